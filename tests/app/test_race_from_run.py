"""What a race takes over from a run: the same tokens, or a sentence that says that they may differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.race_from_run import take
from app.state import House
from app.trace_store import Kept, replay
from decoding.types import Trace

from .conftest import CATALOG, TOY


@pytest.fixture
def house() -> House:
    made = House(CATALOG, "toy")
    assert made.runs.engines.ask(TOY).wait(60) is not None
    return made


def keep(house: House, trace: Trace) -> dict[str, str]:
    """The address of a trace that was dropped."""
    play, _ = replay(trace, "dropped")
    house.store.put("dropped", Kept(trace, play))
    return {"run": "dropped"}


@pytest.fixture
def trace(house: House) -> Trace:
    """A sampled run of the toy."""
    engine = house.runs.engines.ask(TOY).wait(60)
    assert engine is not None
    return engine.generate("Monday: high tide", "lookahead", sampling={"temperature": 0.5}, max_new_tokens=8).trace


def test_a_dropped_trace_is_taken_over_token_by_token(house: House, trace: Trace) -> None:
    state, remarks = take(house, keep(house, trace))
    engine = house.runs.engines.ask(TOY).wait(60)
    assert engine is not None and isinstance(state.prompt, str)
    assert engine.encode(state.prompt) == list(trace.header.prompt)
    assert (state.model, state.methods, state.length) == ("toy", ("autoregressive", "lookahead"), 8)
    assert state.sampling["temperature"] == 0.5 and state.presets == {"lookahead": "defaults"}
    assert remarks == []


def test_what_cannot_be_taken_over_is_said(house: House, trace: Trace) -> None:
    """A model that is not here, and with it its tokens; settings that are no preset."""
    own = replace(trace, header=replace(trace.header, params={**trace.header.params, "W": 3}))
    assert "presets only" in " ".join(take(house, keep(house, own))[1])
    far = replace(trace, header=replace(trace.header, model=replace(trace.header.model, name="elsewhere")))
    state, remarks = take(house, keep(house, far))
    assert state.prompt and state.model is None
    assert "does not have the run's model" in remarks[0] and "other tokens" in remarks[1]
