"""The recorded runs that come with the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from app import traces
from app.catalog import POCKET
from app.controls import presets, runnable
from app.limits import LIMITS
from app.recordings import LANDING, Recording, Recordings
from decoding import METHODS, load
from decoding.trace import parse_trace
from decoding.types import Timing, Trace

from .conftest import lines

RECORDINGS = Recordings()
ALL = list(RECORDINGS)


def without_times(trace: Trace) -> Trace:
    """What must come out the same on every machine; sizes in bytes depend on how weights are laid out there."""
    steps = tuple(replace(step, timing=Timing()) for step in trace.steps)
    model = replace(trace.header.model, weight_bytes=None, pass_bytes=None, token_bytes=None)
    header = replace(trace.header, versions={}, attention="", model=model, bandwidth=None)
    return replace(trace, header=header, steps=steps, summary=None)


def without_shares(trace: Trace) -> Trace:
    """What is exact on every machine: the last digits of a probability depend on how a processor adds."""
    return replace(trace, steps=tuple(replace(step, p=(), q=(), top=(), draft_top=()) for step in trace.steps))


def shares(trace: Trace) -> list[float]:
    """All probabilities of a trace, the tokens they are of between them, and -1 for none."""
    found: list[float] = []
    for step in trace.steps:
        found += [-1.0 if value is None else value for value in (*step.p, *step.q)]
        found += [value for best in (*step.top, *step.draft_top) for pair in best for value in pair]
    return found


def test_every_method_and_preset_has_one() -> None:
    made = {(recording.method, recording.preset) for recording in ALL}
    for name in runnable(POCKET):
        plain = METHODS[name].Params().to_json()
        for preset, values in presets(METHODS[name]).items():
            assert (name, preset) in made or (values == plain and (name, "defaults") in made), f"{name}, {preset}"


@pytest.mark.parametrize("recording", ALL, ids=[recording.id for recording in ALL])
def test_each_is_whole_proven_and_small_enough(recording: Recording) -> None:
    text = RECORDINGS.lines(recording.id)
    told = lines(text)
    assert len(text) <= LIMITS.stream_bytes * 1.1
    steps = [line for line in told if line["kind"] == "step"]
    assert 0 <= recording.step < len(steps) and recording.title and recording.shows
    end: Mapping[str, Any] = told[-1]
    assert end["kind"] == "end" and end["finish"] in ("length", "end_of_text")
    assert end["check"]["violations"] == 0 and end["check"]["checked"] == end["summary"]["new_tokens"]
    assert end["speedup"] == recording.speedup and (recording.speedup is None) == (recording.method == "autoregressive")
    assert end["summary"]["mean_acceptance_length"] == pytest.approx(recording.tokens_per_step, abs=0.006)


def test_the_page_opens_on_lookahead_at_a_step_worth_seeing() -> None:
    landing = RECORDINGS.landing
    assert landing is not None and landing.id == LANDING and landing.method == "lookahead"
    packed = RECORDINGS.packed(landing.id)
    assert packed is not None
    step = parse_trace(packed.data).steps[landing.step]
    assert 0 < step.accepted < step.drafted and step.panel["phase"] == "steady"


@pytest.mark.parametrize("name", [LANDING, "prompt-lookup-defaults"])
def test_the_recipe_makes_them_again(name: str) -> None:
    """Anything but the times is the same: a recording cannot be prettier than the engine."""
    recipe = next(recipe for recipe in traces.recipes() if recipe.id == name)
    engine = load("pocket", device="cpu", dtype="float32")
    recording, trace = traces.record(engine, recipe)
    packed, known = RECORDINGS.packed(name), RECORDINGS.get(name)
    assert packed is not None and known is not None
    made, kept = without_times(trace), without_times(parse_trace(packed.data))
    assert without_shares(made) == without_shares(kept)
    assert shares(made) == pytest.approx(shares(kept), rel=0, abs=1e-3)
    assert (recording.step, recording.tokens_per_step) == (known.step, known.tokens_per_step)


def test_lines_are_made_once() -> None:
    """Replaying takes half a second of the interpreter, and anybody may ask as often as they like."""
    assert RECORDINGS.lines(LANDING) is RECORDINGS.lines(LANDING)


def test_what_is_not_a_recording_is_not_read() -> None:
    assert RECORDINGS.packed("../pocket/tasks") is None and RECORDINGS.get(7) is None
