"""The landscape on the page: a row for each method, a reason for each that has none, and an end in every case."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from analysis.landscape import measure_landscape
from app.jobs import landscape
from app.jobs.landscape import RunLandscape, landscape_of
from app.server.limits import LIMITS
from app.state import AppState
from app.store.trace_store import StoredRun, replay
from decoding.engine import Engine
from decoding.errors import ParamError, SpecscopeError
from decoding.methods import METHODS
from decoding.types import Trace
from viz.landscape_rows import measured_tokens, rows

from .conftest import dropped, lines

MEASURED = ["jacobi", "lookahead", "draft_model", "prompt_lookup", "suffix", "ngrammys", "token_recycling", "ouroboros"]
LACKING = ["medusa", "kangaroo", "eagle3", "rest"]


@pytest.fixture
def engine(app_state: AppState) -> Engine:
    loaded = app_state.jobs.models.request(app_state.catalog["toy"]).wait(60)
    assert loaded is not None
    return loaded


@pytest.fixture
def trace(engine: Engine) -> Trace:
    """A text that the target would not have written word for word."""
    sampling = {"temperature": 1.5, "seed": 1}
    return engine.generate("Monday: high tide at six", "jacobi", sampling=sampling, max_new_tokens=20).trace


def measured(app_state: AppState, trace: Trace) -> list[dict[str, Any]]:
    return lines(deque(started(app_state, dropped(app_state, trace)), maxlen=1).pop())


def started(app_state: AppState, query: dict[str, str]) -> Iterator[str]:
    return app_state.jobs.start(landscape_of(app_state, query), "tab")


def test_every_method_has_a_row_in_the_words_of_notebooks(app_state: AppState, engine: Engine, trace: Trace) -> None:
    first, *_, last = got = measured(app_state, trace)
    found = measure_landscape(engine, [*trace.header.prompt, *trace.ids], MEASURED, first=len(trace.header.prompt))
    assert first["of"] == "dropped"
    assert [line["columns"] for line in got if line["kind"] == "columns"] == [
        [asdict(each) for each in measured_tokens(found)]
    ]
    assert not all(column.is_choice for column in measured_tokens(found))
    shown = [{**line, "kind": None} for line in got if line["kind"] == "row"]
    assert shown == [{"kind": None, **asdict(row)} for row in rows(found)]
    assert last["kind"] == "done" and "tokens are the target's own choice" in last["sentence"]
    assert f"Left out because this model lacks their parts: {METHODS[LACKING[0]].label}, " in last["sentence"]
    assert all(METHODS[name].label in last["sentence"] for name in LACKING)
    shares = [line["share"] for line in got if line["kind"] == "state" and line["what"] == "measuring"]
    assert shares == sorted(shares) and len(shares) >= len(MEASURED)
    assert len(app_state.jobs.queue) == 0 and app_state.jobs.active == 0


def test_a_row_comes_as_soon_as_it_is_measured(app_state: AppState, trace: Trace) -> None:
    seen = list[list[str]]()
    for text in started(app_state, dropped(app_state, trace)):
        seen.append([line["label"] for line in lines(text) if line["kind"] == "row"])
    assert {len(labels) for labels in seen} == {*range(len(MEASURED) + 1)}


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({}, "name a run"),
        ({"run": "unknown"}, "no longer stores"),
        ({"run": "../../etc/passwd"}, "name a run"),
        ({"run": "a" * 10**6}, "name a run"),
        ({"screen": "debug", "run": "dropped"}, "name a run"),
    ],
)
def test_a_hostile_address_is_answered_in_a_sentence(app_state: AppState, query: Any, sentence: str) -> None:
    with pytest.raises(SpecscopeError, match=sentence):
        landscape_of(app_state, query)


@pytest.mark.parametrize(
    ("header", "card", "sentence"),
    [
        ({}, {"name": "elsewhere/model"}, "does not have the run's model"),
        ({}, {"hash": "1" * 64}, "Other weights than those of toy"),
        ({}, {"vocabulary": 7}, "Other weights than those of toy"),
        ({"prompt": (1,) * LIMITS.landscape_tokens}, {}, "above the 2048 that this page measures"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    app_state: AppState, trace: Trace, header: dict[str, Any], card: dict[str, Any], sentence: str
) -> None:
    """A model of the same name may have been trained since; a file may say anything of itself."""
    model = replace(trace.header.model, **card)
    other = replace(trace, header=replace(trace.header, model=model, **header))
    app_state.store.get = lambda run: StoredRun(other, replay(trace, "dropped")[0])  # type: ignore[method-assign]
    try:
        got = deque(started(app_state, {"run": "dropped"}), maxlen=1).pop()
    except SpecscopeError as error:  # before it has joined the queue
        got = str(error)
    assert sentence in got and '"kind":"row"' not in got and len(app_state.jobs.queue) == 0


def test_a_run_without_a_token_is_refused(app_state: AppState, trace: Trace) -> None:
    with pytest.raises(SpecscopeError, match="wrote no token"):
        measured(app_state, replace(trace, steps=()))


def with_context(engine: Engine, context: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.model, "card", replace(engine.model.card, context=context))


def test_a_text_that_fills_the_context_is_measured_as_far_as_steps_have_room(
    app_state: AppState, engine: Engine, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that may write two tokens accepts one guess, however good the drafter is."""
    whole, prompt = len(trace.ids), len(trace.header.prompt)
    with_context(engine, prompt + 5 + 32, monkeypatch)
    *_, last = got = measured(app_state, trace)
    assert [len(line["columns"]) for line in got if line["kind"] == "columns"] == [5]
    assert f"the first 5 of the run's {whole} new tokens" in last["sentence"]
    accepted = [line["accepted"] for line in got if line["kind"] == "row"]
    found = measure_landscape(engine, [*trace.header.prompt, *trace.ids[:5]], MEASURED, first=prompt, max_new_tokens=32)
    assert accepted == [one["accepted"] for one in found["methods"]]
    with_context(engine, prompt + 32, monkeypatch)
    *_, last = measured(app_state, trace)
    assert last["kind"] == "fault" and "fills the model's context" in last["sentence"]


def test_what_one_method_lacks_another_one_has(
    app_state: AppState, engine: Engine, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first method, too: the columns then come with the second."""

    def broken(engine: Engine, text: Any, methods: Any, **options: Any) -> Any:
        if methods == ["jacobi"]:
            raise ParamError("the settings of this method are wrong: choose others")
        return measure_landscape(engine, text, methods, **options)

    monkeypatch.setattr("analysis.landscape.measure_landscape", broken)
    *_, last = got = measured(app_state, trace)
    kinds = [line["kind"] for line in got if line["kind"] in ("columns", "row")]
    assert kinds == ["columns"] + ["row"] * (len(MEASURED) - 1)
    assert "Left out (the settings of this method are wrong: choose others): Jacobi." in last["sentence"]


def test_parts_that_cannot_be_loaded_leave_their_method_out(
    app_state: AppState, engine: Engine, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, real = app_state.jobs.models, engine.prepare
    monkeypatch.setattr(models, "_parts", {})

    def broken(method: str, *more: Any) -> Any:
        if method == "ngrammys":
            raise ParamError("/secret/folder is gone")
        return real(method, *more)

    monkeypatch.setattr(engine, "prepare", broken)
    *_, last = got = measured(app_state, trace)
    assert len([line for line in got if line["kind"] == "row"]) == len(MEASURED) - 1
    assert "Left out (what ngrammys needs of toy cannot be loaded" in last["sentence"] and "/secret" not in str(got)


def test_the_time_is_limited(app_state: AppState, trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landscape, "LIMITS", replace(LIMITS, seconds=0.0))
    *_, last = got = measured(app_state, trace)
    assert not [line for line in got if line["kind"] == "row"]
    assert "Left out since the 0 seconds were over: Jacobi, Lookahead, " in last["sentence"]
    assert last["sentence"].startswith("Nothing was measured")


def test_stop_leaves_the_rows_that_are_there(app_state: AppState, trace: Trace) -> None:
    text = ""
    for text in started(app_state, dropped(app_state, trace)):
        if '"row"' in text:
            app_state.jobs.stop("tab", RunLandscape)
    *_, last = got = lines(text)
    labels = [line["label"] for line in got if line["kind"] == "row"]
    assert 1 <= len(labels) < len(MEASURED) and last["kind"] == "done"
    assert "Left out because the measurement was stopped: " in last["sentence"] and "Ouroboros" in last["sentence"]
    assert len(app_state.jobs.queue) == 0


def test_it_waits_its_turn_and_can_be_stopped_there(app_state: AppState, trace: Trace) -> None:
    with app_state.jobs.queue.join("somebody"):
        text = ""
        for text in started(app_state, dropped(app_state, trace)):
            if '"queued"' in text:
                app_state.jobs.stop("tab", RunLandscape)
    *_, waits, last = lines(text)
    assert waits["sentence"] == "1 run is before yours."
    assert last == {"kind": "fault", "sentence": "Stopped before it began."}


def test_a_visitor_who_leaves_is_not_measured_for(
    app_state: AppState, engine: Engine, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The method that is being measured ends too, before others have their turn."""
    ended = threading.Event()

    def endless(engine: Engine, text: Any, methods: Any, *, cancel: threading.Event, **options: Any) -> Any:
        assert cancel.wait(60)
        ended.set()
        return {"finished": False}

    monkeypatch.setattr("analysis.landscape.measure_landscape", endless)
    going = started(app_state, dropped(app_state, trace))
    next(text for text in going if '"measuring"' in text)
    assert len(app_state.jobs.queue) == 1
    going.close()  # type: ignore[attr-defined]
    assert ended.is_set() and len(app_state.jobs.queue) == 0 and app_state.jobs.active == 0


def test_an_unforeseen_error_is_one_sentence(
    app_state: AppState, engine: Engine, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*anything: Any, **options: Any) -> Any:
        raise RuntimeError("out of memory at 0x7f")

    monkeypatch.setattr("analysis.landscape.measure_landscape", broken)
    *_, last = got = measured(app_state, trace)
    assert last["kind"] == "fault" and "0x7f" not in str(got) and len(app_state.jobs.queue) == 0
