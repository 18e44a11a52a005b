"""Races of recordings of one prompt: the short one that the page opens with, and the one of its Race screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decoding import smollm2
from decoding.types import Trace
from viz.stream.lines import line
from viz.stream.play import Play

from ..examples import EXAMPLES
from ..server.machine import elsewhere
from ..store.recordings import RecordedRun, Recordings, task
from .streaming import page_line


@dataclass(frozen=True, slots=True)
class RecordedRace:
    """Recordings of one prompt that the page races before any live run."""

    prompt: str
    runs: tuple[str, ...]


# What the page opens with. Of all recordings on the real model the speculative one wins by most passes and most time.
OPENING = RecordedRace(
    EXAMPLES["spelling"].prompt,
    tuple(f"{smollm2.NAME}-spelling-{method}" for method in ("autoregressive", "prompt_lookup")),
)
RACES = (  # the page shows the first of which it has two lanes
    RecordedRace(
        EXAMPLES["prime"].prompt,
        tuple(
            f"{smollm2.NAME}-prime-{method}"
            for method in ("autoregressive", "lookahead", "prompt_lookup", "suffix", "token_recycling", "eagle3")
        ),
    ),
    RecordedRace(
        EXAMPLES["sum"].prompt,
        tuple(
            f"{method}-defaults" for method in ("autoregressive", "lookahead", "jacobi", "medusa", "kangaroo", "eagle3")
        ),
    ),
)

_NUMBERS = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six"}


def opening(recordings: Recordings) -> str:
    """Write the lines of the race that the page opens with.

    Empty if a lane of it cannot be read, or if the page opens with another run.
    """
    landing, lanes = recordings.landing, _lanes(recordings, OPENING.runs)
    if landing is None or landing.id != OPENING.runs[-1] or len(lanes) < len(OPENING.runs):
        return ""
    machine = next(filter(None, (elsewhere(trace.header) for _, trace in lanes)), "")
    shows = f"{landing.about} Texts with less to copy gain less."
    return _lines(lanes, model=landing.family, title=OPENING.prompt, shows=shows, machine=machine)


def recorded_race(recordings: Recordings, live: bool = True) -> str:
    """Write the lines of the first race with two readable lanes; empty if there is none.

    On a page that is `live` they say how to run another race.
    """
    for race in RACES:
        lanes = _lanes(recordings, race.runs)
        if len(lanes) > 1:
            return _of_the_screen(race, lanes, " The form holds the next race: press Race to run it." if live else "")
    return ""


def _lanes(recordings: Recordings, runs: Sequence[str]) -> list[tuple[RecordedRun, Trace]]:
    """Return the readable recordings that answer the same prompt as the first of them."""
    lanes = list[tuple[RecordedRun, Trace]]()
    for run in runs:
        recording, trace = recordings.get(run), recordings.trace(run)
        if recording is not None and trace is not None and (not lanes or task(trace) == task(lanes[0][1])):
            lanes.append((recording, trace))
    return lanes


def _of_the_screen(race: RecordedRace, lanes: Sequence[tuple[RecordedRun, Trace]], advice: str) -> str:
    shows = f"{_NUMBERS[len(lanes)]} methods answer “{race.prompt}” on {lanes[0][0].family}.{advice}"
    machine = next(filter(None, (elsewhere(trace.header) for _, trace in lanes)), "")
    return _lines(lanes, title="A recorded race", shows=shows, machine=machine, address="screen=race", recorded=True)


def _lines(lanes: Sequence[tuple[RecordedRun, Trace]], **facts: object) -> str:
    """Write the lines of a race; what the page shows about it comes first."""
    text = page_line(**facts) + line("race", labels=[recording.label for recording, _ in lanes])
    for lane, (recording, trace) in enumerate(lanes):
        text += _lane(recording, trace, lane)
    return text + line("done", runs=[(recording.label, recording.id) for recording, _ in lanes])


def _lane(recording: RecordedRun, trace: Trace, lane: int) -> str:
    """Write the lines of a recording, all steps thin and without views: a race shows texts and times only."""
    play = Play(trace.header, recording.id, cap=0, views={}, lane=lane)
    begin = play.begin(trace.texts)
    steps = "".join(play.step(step) for step in trace.steps)
    return begin + steps + play.end(trace.summary, recording.check, recording.speedup)
