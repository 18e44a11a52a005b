"""Examinations on the page: a report, limits, and an end whenever a visitor asks for one."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from app.jobs import examination
from app.jobs.examination import Examination
from app.jobs.runner import JobRunner
from app.models.catalog import EMBEDDED, POCKET
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from app.server.limits import LIMITS
from app.store.trace_store import TraceStore
from decoding import load
from decoding.embedded import FOLDERS, PARTS, TARGET
from decoding.errors import ParamError

from .conftest import TOY, lines


@pytest.fixture(scope="module")
def doctor_jobs() -> JobRunner:
    return JobRunner(ModelPool({POCKET.name: POCKET}), TraceStore())


@pytest.fixture(autouse=True)
def few_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(LIMITS, examination_prompts=6, examination_tokens=16)
    monkeypatch.setattr(examination, "LIMITS", few)


def examined(jobs: JobRunner, model: CatalogEntry, method: str) -> list[dict[str, Any]]:
    return lines(deque(jobs.start(Examination(model, method), "tab"), maxlen=1).pop())


@pytest.mark.parametrize("method", ["medusa", "draft_model"])
def test_a_good_drafter_is_reported_healthy(doctor_jobs: JobRunner, method: str) -> None:
    *_, last = examined(doctor_jobs, POCKET, method)
    report = last["report"]
    assert report["healthy"] and report["faults"] == []
    assert set(report["charts"]) == {"light", "dark"} and len(report["charts"]["dark"]["data"]) == 1
    assert len(doctor_jobs.queue) == 0 and doctor_jobs.active == 0


def test_a_drafter_that_is_examined_again_has_the_same_numbers(doctor_jobs: JobRunner) -> None:
    """Each press drew other prompts, so that one drafter accepted 4.4 tokens a step, and then 4.7."""
    first, second = (examined(doctor_jobs, POCKET, "medusa")[-1]["report"] for _ in range(2))
    for report in (first, second):
        del report["seconds"]
        report["verdict"], timed = re.subn(r" in \d+ s\.", "", report["verdict"])
        assert timed == 1
    assert first == second


@pytest.mark.slow
def test_the_drafter_of_the_lesson_has_both_curves_and_no_folder_is_named() -> None:
    """A visitor must not see where the host keeps its files."""
    ill = EMBEDDED["pocket-slow-drafter"]
    [*_, last] = got = examined(JobRunner(ModelPool({ill.name: ill}), TraceStore()), ill, "eagle3")
    assert [fault["flag"] for fault in last["report"]["faults"]] == ["norm_before_residual"]
    given, mended = last["report"]["charts"]["light"]["data"]
    assert given["y"][0] < mended["y"][0] and "mended" in mended["name"]
    assert "samples" not in str(got)


def test_a_name_of_the_catalog_does_not_make_the_drafter_another_models() -> None:
    """The host calls the model as it likes; the drafter names the folder that it was trained for."""
    place, target = PARTS[TARGET]["eagle"], FOLDERS[TARGET]
    entry = CatalogEntry("My model", str(target), part_places={"eagle": str(place)})
    engine = load(TARGET, device="cpu")
    engine.model.card = replace(engine.model.card, name=entry.name)  # as the page does after loading
    named = examination._open(engine, entry, "eagle3").checks()[0]
    assert (named.name, named.fine) == ("verifier", True), named.sentence


def test_stop_ends_an_examination(doctor_jobs: JobRunner) -> None:
    text = ""
    for text in doctor_jobs.start(Examination(POCKET, "medusa"), "tab"):
        if "examining" in text:
            doctor_jobs.stop("tab", Examination)
    assert lines(text)[-1] == {"kind": "fault", "sentence": "The examination was stopped."}
    assert len(doctor_jobs.queue) == 0


def test_an_examination_has_a_time_limit(doctor_jobs: JobRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "LIMITS", replace(LIMITS, examination_seconds=0.0))
    *_, last = examined(doctor_jobs, POCKET, "medusa")
    assert last["kind"] == "fault" and "may take" in last["sentence"]


@pytest.mark.parametrize(("model", "method"), [(POCKET, "lookahead"), (TOY, "medusa"), (POCKET, "no such method")])
def test_what_has_no_drafter_is_refused(model: CatalogEntry, method: str) -> None:
    with pytest.raises(ParamError, match="no drafter"):
        Examination(model, method)
