"""The timeline: its bars are the tokens of the steps, its areas their times, and nothing is lost between them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from decoding.types import Timing
from viz.palette import THEMES, TIME_LOOKS
from viz.run_state import RunState
from viz.views.timeline import VIEW

from .drawings import drawn
from .records import METHODS, changed, record, timed

ACCEPTED, CORRECTION, BONUS, OWN, REJECTED, FORWARD = range(6)
EVERY = pytest.mark.parametrize("method", METHODS)


@EVERY
def test_bars_are_the_tokens_written(method: str) -> None:
    """Stacked they are as high as the step wrote tokens, and the green part is what was guessed right."""
    trace = record(method)
    data = drawn(trace, VIEW, len(trace.steps) - 1)["data"]
    for step in trace.steps:
        stack = [data[part]["y"][step.index] for part in (ACCEPTED, CORRECTION, BONUS, OWN)]
        assert sum(stack) == len(step.emitted)
        assert stack[ACCEPTED] == min(step.accepted, len(step.emitted))
        assert stack[OWN] == (not step.drafted)
        assert (data[REJECTED]["y"][step.index] is not None) == (stack[CORRECTION] == 1)
    assert all("x" not in data[part] for part in range(FORWARD + len(TIME_LOOKS)))  # the place in the row is the step


@EVERY
def test_areas_are_the_times_measured(method: str) -> None:
    """Together they are the step's whole time; the first step, which reads the prompt, is listed apart."""
    trace = timed(record(method))
    data = drawn(trace, VIEW, len(trace.steps) - 1)["data"]
    for step in trace.steps:
        parts = [data[FORWARD + i]["y"][step.index] for i in range(len(TIME_LOOKS))]
        if step.index == 0:
            assert parts == [None] * len(TIME_LOOKS)
            continue
        assert sum(parts) == pytest.approx(step.timing.total_ms, abs=0.01)
        assert parts == pytest.approx([getattr(step.timing, f"{phase}_ms") for phase in TIME_LOOKS], abs=0.001)
    first = trace.steps[0]
    words = data[FORWARD + len(TIME_LOOKS)]["text"]
    guesses = first.fed - len(trace.header.prompt)
    what = "prompt and guesses" if guesses else "prompt"
    assert words == [f"{what}: {first.fed} tokens read in {first.timing.total_ms:.0f} ms"]


def test_a_changed_record_gives_another_figure() -> None:
    """The negative control of the tests above."""
    trace = timed(record("lookahead"))
    step = trace.steps[3]
    slower = changed(trace, 3, timing=replace(step.timing, forward_ms=step.timing.forward_ms + 1))
    assert drawn(trace, VIEW, 5)["data"][FORWARD] != drawn(slower, VIEW, 5)["data"][FORWARD]
    other = changed(trace, 3, timing=Timing(total_ms=step.timing.total_ms))
    assert drawn(trace, VIEW, 2)["data"] == drawn(other, VIEW, 2)["data"]  # before the step nothing changes


def test_a_step_sends_one_point_of_every_trace() -> None:
    """It grows with the run: a patch of all steps would make a long run's stream quadratic."""
    state = RunState.of(record("medusa"))
    for step in state.steps:
        data = VIEW.frame(state, step.index)["data"]
        assert all(len(part["y"]) == 1 for part in data)
        assert len(data) == FORWARD + len(TIME_LOOKS) + (step.index == 0)


def test_times_have_their_own_colours_and_patterns() -> None:
    """A time in the colour of a fate would say something that is not so."""
    for theme in THEMES.values():
        times = [theme[phase.colour.removeprefix("$")] for phase in TIME_LOOKS.values()]
        others = {colour for name, colour in theme.items() if not name.startswith("time_")}
        assert len({*times}) == len(TIME_LOOKS) and others.isdisjoint(times)
    assert len({phase.pattern for phase in TIME_LOOKS.values()}) == len(TIME_LOOKS)
