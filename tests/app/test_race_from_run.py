"""What a race takes over from a run: the same tokens, or a sentence that says that they may differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.address import PageState, parse
from app.race_from_run import race_from_run
from app.state import AppState
from decoding.types import Trace

from .conftest import TOY, dropped


@pytest.fixture
def trace(app_state: AppState) -> Trace:
    """A sampled run of the toy."""
    engine = app_state.jobs.models.request(TOY).wait(60)
    assert engine is not None
    return engine.generate("Monday: high tide", "lookahead", sampling={"temperature": 0.5}, max_new_tokens=8).trace


def test_a_dropped_trace_is_taken_over_token_by_token(app_state: AppState, trace: Trace) -> None:
    state, remarks = race_from_run(app_state, dropped(app_state, trace))
    engine = app_state.jobs.models.request(TOY).wait(60)
    assert engine is not None and isinstance(state.prompt, str)
    assert engine.encode(state.prompt) == list(trace.header.prompt)
    assert (state.model, list(state.lanes), state.length) == ("toy", ["autoregressive", "lookahead"], 8)
    assert state.sampling["temperature"] == 0.5 and state.lanes["lookahead"] == ("defaults",)
    assert remarks == []


def test_settings_that_are_no_preset_race_as_well(app_state: AppState, trace: Trace) -> None:
    """The run's own settings were left out: the race was one of the defaults."""
    own = replace(trace, header=replace(trace.header, params={**trace.header.params, "W": 3, "drop_bonus": True}))
    state, remarks = race_from_run(app_state, dropped(app_state, own))
    assert state.lanes == {"autoregressive": ("defaults",), "lookahead": ("W=3, drop_bonus=true",)} and remarks == []


def test_what_cannot_be_taken_over_is_said(app_state: AppState, trace: Trace) -> None:
    """A model that is not here, and with it its tokens."""
    far = replace(trace, header=replace(trace.header, model=replace(trace.header.model, name="elsewhere")))
    state, remarks = race_from_run(app_state, dropped(app_state, far))
    assert state.prompt is None and state.model is None
    assert "does not have the run's model" in remarks[0] and "prompt field was left" in remarks[1]


def race_of(app_state: AppState, state: PageState, methods: str, **more: str) -> PageState:
    """Return the race of these methods that has a state's prompt, as the form would."""
    query = {"model": "toy", "methods": methods, "raw": str(state.prompt), "temperature": "0.5", "length": "24"}
    return parse(query | more, app_state.catalog)


def test_a_second_run_is_a_further_lane(app_state: AppState, trace: Trace) -> None:
    """It replaced the first one without a word."""
    query = dropped(app_state, trace)
    alone, _ = race_from_run(app_state, query)
    race = race_of(app_state, alone, "autoregressive,jacobi,lookahead", **{"preset.lookahead": "W=4"})
    state, remarks = race_from_run(app_state, query, race)
    jacobi = ("defaults",)
    assert state.lanes == {"autoregressive": jacobi, "jacobi": jacobi, "lookahead": ("W=4", "defaults")}
    assert remarks == [] and state.length == 24  # the race's own
    again, remarks = race_from_run(app_state, query, state)
    assert again.lanes == state.lanes and remarks == ["Lookahead races with these settings already."]


def test_a_full_race_says_that_a_lane_must_go_first(app_state: AppState, trace: Trace) -> None:
    query = dropped(app_state, trace)
    alone, _ = race_from_run(app_state, query)
    race = race_of(app_state, alone, "autoregressive,jacobi", **{"preset.jacobi": "n=2|n=3|n=4|n=5|n=6"})
    state, remarks = race_from_run(app_state, query, race)
    assert state.lanes == race.lanes and "at most 6 lanes" in remarks[0]


@pytest.mark.parametrize("other", [{"raw": "Tuesday"}, {"temperature": "0.6"}, {"model": "other"}])
def test_a_run_on_another_task_replaces_the_race_and_says_so(
    app_state: AppState, trace: Trace, other: dict[str, str]
) -> None:
    query = dropped(app_state, trace)
    alone, _ = race_from_run(app_state, query)
    race = race_of(app_state, alone, "autoregressive,jacobi", **other)
    state, remarks = race_from_run(app_state, query, race)
    assert [*state.lanes] == ["autoregressive", "lookahead"] and "were replaced" in remarks[0]
