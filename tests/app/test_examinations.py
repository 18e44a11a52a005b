"""Examinations on the page: a report, limits, and an end whenever a visitor asks for one."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.jobs import examination
from app.jobs.examination import Examination
from app.jobs.runner import JobKey, JobRunner, StartedJob
from app.models.catalog import EMBEDDED, POCKET
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool, without_places
from app.server.limits import LIMITS
from app.store.trace_store import TraceStore
from decoding import load
from decoding.embedded import FOLDERS, PARTS, TARGET
from decoding.errors import ParamError

from .conftest import SECRET, TOY, entry, lines
from .test_paths import other_tokens


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
    """Each press drew other prompts, so that one drafter accepted 4.4 tokens per step, and then 4.7."""
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
    jobs = JobRunner(ModelPool({}), TraceStore())
    started = StartedJob(jobs, JobKey("tab", Examination), "")
    started.engine = engine
    named = examination._find(started, entry, "eagle3")[1]().checks()[0]
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


def edited(name: str, **entries: Any) -> Callable[[Path], object]:
    """Change entries of a JSON file."""
    return lambda folder: (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | entries))


def without_weights(folder: Path) -> None:
    for path in folder.glob("*.safetensors*"):
        path.unlink()


REFUSED: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "config is no JSON": ("draft_model", lambda drafter: (drafter / "config.json").write_text("{"), "is no JSON from"),
    "weights that are no draft model's": ("draft_model", edited("config.json", hidden_size=64), "has shape"),
    "heads without weights": ("medusa", without_weights, "holds no"),
    "an adapter of no layer": ("kangaroo", edited("config.json", exit_layer=0), "exit_layer must be"),
    "an adapter of a path": ("kangaroo", edited("config.json", exit_layer="/etc/secrets/key"), "exit_layer must be"),
}


@pytest.mark.parametrize(("method", "change", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_drafter_that_is_refused_is_reported_with_the_reason(
    cellar: Path, method: str, change: Callable[[Path], object], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason was in the log of the host alone, although examining such drafters is what a doctor is for."""
    kind = {"draft_model": "drafter"}.get(method, method)
    change(cellar / f"{SECRET}-{kind}")
    ours = entry(cellar)
    jobs = JobRunner(ModelPool({"ours": ours}), TraceStore())
    sent = examined(jobs, ours, method)
    [fault] = sent[-1]["report"]["faults"]
    assert reason in fault["sentence"] and sent[-1]["report"]["condition"] == "faulty"
    assert SECRET not in str(sent) and str(cellar.parent) not in str(sent) and "/etc" not in str(sent)
    assert "ours is refused" in caplog.text


def test_a_drafter_with_other_tokens_is_examined_without_the_engine_that_refuses_it(cellar: Path) -> None:
    """As on the command line, which loads the model without the drafter."""
    other_tokens(cellar / f"{SECRET}-drafter" / "tokenizer.json")
    ours = entry(cellar)
    sent = examined(JobRunner(ModelPool({"ours": ours}), TraceStore()), ours, "draft_model")
    report = sent[-1]["report"]
    assert "tokenizer" in [fault["flag"] for fault in report["faults"]] and report["tokens_per_step_given"] > 1
    assert SECRET not in str(sent) and report["model"] == "ours"


def test_a_drafter_that_is_not_there_has_no_fault(cellar: Path) -> None:
    ours = entry(cellar, draft=str(cellar / "gone"))
    [*_, last] = examined(JobRunner(ModelPool({"ours": ours}), TraceStore()), ours, "draft_model")
    assert last["sentence"].startswith("The drafter of ours cannot be examined on this server now")


def test_a_target_that_cannot_be_loaded_is_not_the_drafters_fault(cellar: Path) -> None:
    (cellar / f"{SECRET}-target" / "config.json").write_text("{")
    ours = entry(cellar)
    [*_, last] = examined(JobRunner(ModelPool({"ours": ours}), TraceStore()), ours, "draft_model")
    assert last["kind"] == "fault" and "cannot be loaded on this server now" in last["sentence"]


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("config.json in '/home/host/models/ours' is no JSON", "config.json in its folder is no JSON"),
        ('"/home/o\'host/ours" holds pickled heads only', "its folder holds pickled heads only"),
        ("'rel/ative/ours' is no folder: name org/model", "its folder is no folder: name org/model"),
        ("with 50% of q, k and v it is 0.12 nats/token", "with 50% of q, k and v it is 0.12 nats/token"),
    ],
)
def test_no_part_of_a_place_is_shown(sentence: str, shown: str) -> None:
    ours = CatalogEntry("ours", "/home/host/models/ours", draft="rel/ative/ours")
    assert without_places(ours, sentence) == shown
