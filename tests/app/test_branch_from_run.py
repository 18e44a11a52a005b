"""What if: a run that goes on from a place that an address names."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from app.branch_from_run import branch_of
from app.jobs.live_run import LiveRun
from app.server.limits import LIMITS
from app.state import AppState
from app.store.trace_store import StoredRun, replay
from decoding.errors import ParamError, SpecscopeError
from decoding.types import Trace

from .conftest import dropped, lines


@pytest.fixture
def trace(app_state: AppState) -> Trace:
    engine = app_state.jobs.models.request(app_state.catalog["toy"]).wait(60)
    assert engine is not None
    return engine.generate("Monday: high tide", "jacobi", {"n": 4}, max_new_tokens=24, record="full").trace


def rejected(trace: Trace) -> tuple[int, int]:
    """Return a step and a guess that the target rejected there, with what it wanted in its place."""
    step = next(step for step in trace.steps[2:] if step.accepted == 0)
    return step.index, 1


def decoded(app_state: AppState, query: dict[str, str]) -> list[dict[str, Any]]:
    order, fork = branch_of(app_state, query)
    text = deque(
        app_state.jobs.start(LiveRun(order, "", fresh=True, beside=True, branch=fork.query), "tab"), maxlen=1
    ).pop()
    return lines(text)


def test_a_rejected_guess_is_decoded_on_beside_the_run(app_state: AppState, trace: Trace) -> None:
    """What the page shows: a run of its own, which can be opened again and says where it comes from."""
    k, node = rejected(trace)
    got = decoded(app_state, dropped(app_state, trace) | {"branch": f"{k}n{node}"})
    host = got[0]
    assert (
        host["live"] == "beside" and host["branch"] == f"branch={k}n{node}" and host["address"] == f"run={host['run']}"
    )
    header = next(line for line in got if line["kind"] == "play")["header"]
    assert header["branch"]["run"] == "dropped" and header["branch"]["step"] == k
    assert header["branch"]["forced"] == [trace.steps[k].tokens[node]]
    branch = app_state.store.get(host["run"])
    assert branch is not None and branch.trace.header.record == "full"
    assert branch.trace.header.branch is not None and branch.trace.header.branch.prompt == len(trace.header.prompt)
    assert lines(app_state.calls.open_run(host["run"])["lines"])[0]["address"] == f"run={host['run']}"
    again = decoded(app_state, {"run": host["run"], "branch": "0k0", "force": " Sunday"})  # a branch of the branch
    assert next(line for line in again if line["kind"] == "play")["header"]["branch"]["run"] == host["run"]


def test_a_text_is_forced(app_state: AppState, trace: Trace) -> None:
    got = decoded(app_state, dropped(app_state, trace) | {"branch": "3k0", "force": " Sunday\ud800"})
    assert any(line["kind"] == "end" for line in got) and "force=+Sunday" in got[0]["branch"]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({}, "name a run"),
        ({"branch": "1n1"}, "name a run"),
        ({"run": "dropped"}, "name a run"),
        ({"run": "unknown", "branch": "1n1"}, "no longer stores"),
        ({"run": "dropped", "branch": "1n1;"}, "a branch is a step"),
        ({"run": "dropped", "branch": "1k1"}, "1 to 200 characters"),
        ({"run": "dropped", "branch": "1k1", "force": "a" * 201}, "1 to 200 characters"),
        ({"run": "dropped", "branch": "999999n1"}, "the step must be"),
        ({"run": "dropped", "branch": "4096n1"}, "choose an earlier one"),
    ],
)
def test_what_names_no_place_is_refused(app_state: AppState, trace: Trace, query: Any, sentence: str) -> None:
    dropped(app_state, trace)
    with pytest.raises(SpecscopeError, match=sentence):
        branch_of(app_state, query)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"method": "telepathy"}, "lacks the parts"),
        ({"method": "lookahead", "params": {"W": 30, "N": 10, "G": 30}}, "above the 256"),
        ({"params": {"n": "\x00"}}, "n must be"),
        ({"prompt": (1,) * (LIMITS.prompt_tokens + LIMITS.new_tokens + 1)}, "more than this page reads"),
        ({"reference": (1,) * 10**6}, "longer than this page reads"),
    ],
)
def test_a_file_cannot_ask_for_more_than_a_visitor(
    app_state: AppState, trace: Trace, changes: Any, sentence: str
) -> None:
    """A trace may come from anybody: its header is an order."""
    wrong = replace(trace, header=replace(trace.header, **changes))
    app_state.store.get = lambda run: StoredRun(wrong, replay(trace, "dropped")[0])  # type: ignore[method-assign]
    with pytest.raises(SpecscopeError, match=sentence):
        branch_of(app_state, {"run": "dropped", "branch": "1n1"})


def test_another_models_trace_is_refused(app_state: AppState, trace: Trace) -> None:
    """By name it is not at hand; by its name alone it is another one's."""
    card = replace(trace.header.model, name="elsewhere/model")
    with pytest.raises(ParamError, match="does not have the run's model"):
        branch_of(
            app_state,
            dropped(app_state, replace(trace, header=replace(trace.header, model=card))) | {"branch": "1n1"},
        )
    card = replace(trace.header.model, hash="1" * 64)
    query = dropped(app_state, replace(trace, header=replace(trace.header, model=card)))
    assert "not by" in decoded(app_state, query | {"branch": "1n1"})[-1]["sentence"]


def test_a_long_run_goes_on_as_long_as_the_page_allows(app_state: AppState, trace: Trace) -> None:
    long = replace(trace, header=replace(trace.header, max_new_tokens=100_000, prefill_chunk=4096))
    order, _ = branch_of(app_state, dropped(app_state, long) | {"branch": "2k0", "force": "a"})
    assert order.origin is not None
    header, step = order.origin.trace.header, trace.steps[2]
    assert header.max_new_tokens == step.start - len(header.prompt) + LIMITS.new_tokens and header.prefill_chunk == 512
