"""Races of settings on the page: what wins, what is refused, and an end whenever a visitor asks for one."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from analysis import tuning
from app import address
from app.controls import order
from app.jobs import settings_race
from app.jobs.runner import JobRunner
from app.jobs.settings_race import SettingsRace
from app.models.catalog import POCKET
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from app.server.limits import LIMITS
from app.store.trace_store import TraceStore
from decoding.errors import ParamError
from decoding.methods.jacobi import JacobiParams

from .conftest import lines

CATALOG = {POCKET.name: POCKET}


@pytest.fixture(scope="module")
def jobs() -> JobRunner:
    return JobRunner(ModelPool(CATALOG), TraceStore())


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Race two settings on two prompts, and save nothing for the user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(settings_race, "LIMITS", replace(LIMITS, tuning_prompts=1, tuning_tokens=8))
    monkeypatch.setattr(tuning, "candidates", lambda method: [JacobiParams(n=n).to_json() for n in (2, 5)])


def race(method: str = "jacobi", prompt: str = "Tell me about the sea.") -> SettingsRace:
    chosen = order(CATALOG, model=POCKET.name, method=method, params={}, sampling={}, prompt=prompt, max_new_tokens=1)
    return SettingsRace(chosen)


def last_line(jobs: JobRunner, job: SettingsRace) -> dict[str, Any]:
    return lines(deque(jobs.start(job, "tab"), maxlen=1).pop())[-1]


@pytest.mark.parametrize("pays", [True, False])
def test_what_wins_is_told_and_can_be_taken_over(jobs: JobRunner, monkeypatch: pytest.MonkeyPatch, pays: bool) -> None:
    """Where speculation loses, what can be taken over is autoregressive decoding."""
    timed, seconds = tuning.timed_run, 1.0 if pays else 1e-9

    def slowed(engine: Any, method: str, *given: Any) -> Any:
        run = timed(engine, method, *given)
        return replace(run, decode_seconds=seconds * run.decode_tokens) if method == "autoregressive" else run

    monkeypatch.setattr(tuning, "timed_run", slowed)
    report = last_line(jobs, race())["report"]
    assert report["speculate"] is pays and ("Do not speculate" in report["verdict"]) is not pays
    assert "on your prompt and 1 other (the same at each press), up to 8 tokens each" in report["verdict"]
    state = address.parse(dict(parse_qsl(report["address"])), CATALOG)
    assert (state.method, state.problems) == ("jacobi" if pays else "autoregressive", [])
    if pays:
        assert state.params["n"] in (2, 5)
    assert len(report["rows"]) == 2 and len(jobs.queue) == 0 and jobs.active == 0


def test_settings_that_are_raced_again_answer_the_same_prompts(
    jobs: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each press drew other prompts beside the visitor's, so that two presses told of different texts."""
    raced, tuned = list[Any](), tuning.tuning

    def noted(engine: Any, method: str, prompts: Any, *given: Any) -> Any:
        raced.append(prompts)
        return tuned(engine, method, prompts, *given)

    monkeypatch.setattr(tuning, "tuning", noted)
    for _ in range(2):
        last_line(jobs, race())
    assert raced[0] == raced[1] and len(raced[0]) == 2


@pytest.mark.parametrize("close", [True, False])
def test_a_race_that_is_too_close_to_call_says_so(
    jobs: JobRunner, monkeypatch: pytest.MonkeyPatch, close: bool
) -> None:
    """Autoregressive decoding is far slower on one prompt, and on the other faster or as slow."""
    timed, turns = tuning.timed_run, itertools.cycle([2.0, 0.6 if close else 1.9])

    def paced(engine: Any, method: str, *given: Any) -> Any:
        run = timed(engine, method, *given)
        return replace(run, decode_seconds=run.decode_tokens * (next(turns) if method == "autoregressive" else 1.0))

    monkeypatch.setattr(tuning, "timed_run", paced)
    monkeypatch.setattr(tuning, "Disturbance", lambda: type("Quiet", (), {"disturbed": False})())
    report = last_line(jobs, race())["report"]
    assert report["speculate"] and ("too close to call" in report["verdict"]) is close


def test_a_disturbed_race_says_first_that_it_is_unsure(jobs: JobRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "Disturbance", lambda: type("Busy", (), {"disturbed": True})())
    assert last_line(jobs, race())["report"]["verdict"].startswith("Unsure: other work disturbed ")
    monkeypatch.setattr(tuning, "Disturbance", lambda: type("Quiet", (), {"disturbed": False})())
    assert "Unsure" not in last_line(jobs, race())["report"]["verdict"]


def test_stop_ends_a_race(jobs: JobRunner) -> None:
    text = ""
    for text in jobs.start(race(), "tab"):
        if "tuning" in text:
            jobs.stop("tab", SettingsRace)
    assert lines(text)[-1] == {"kind": "fault", "sentence": "The race was stopped."}


def test_a_race_has_a_time_limit(jobs: JobRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_race, "LIMITS", replace(settings_race.LIMITS, tuning_seconds=0.0))
    last = last_line(jobs, race())
    assert last["kind"] == "fault" and "may take 0 seconds" in last["sentence"]


class Lent(CatalogEntry):
    """A model on a GPU that is lent for seconds."""

    __slots__ = ()
    is_metered = True


def test_what_cannot_be_raced_is_refused() -> None:
    with pytest.raises(ParamError, match="no settings to choose"):
        race("autoregressive")
    lent = Lent(**{name: getattr(POCKET, name) for name in POCKET.__dataclass_fields__})
    with pytest.raises(ParamError, match="too short for a race"):
        SettingsRace(replace(race().order, entry=lent))
