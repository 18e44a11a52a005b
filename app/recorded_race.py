"""The race that the page shows before one is run: recordings of one prompt, side by side in their recorded times."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.types import Trace
from viz.stream.lines import line
from viz.stream.play import Play

from .gallery_recipes import RACES, RecordedRace
from .machine import elsewhere
from .recordings import Recording, Recordings
from .streaming import in_lane, page_line

_NUMBERS = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six"}


def recorded_race(recordings: Recordings) -> str:
    """The lines of the first race of which two lanes can be read; empty if there is none."""
    for race in RACES:
        lanes = _lanes(recordings, race.runs)
        if len(lanes) > 1:
            return _lines(race, lanes)
    return ""


def _lanes(recordings: Recordings, runs: Sequence[str]) -> list[tuple[Recording, Trace]]:
    """The recordings that can be read, and that answer the same prompt as the first of them."""
    found = list[tuple[Recording, Trace]]()
    for run in runs:
        recording, trace = recordings.get(run), recordings.trace(run)
        if recording is not None and trace is not None and (not found or _answers(trace) == _answers(found[0][1])):
            found.append((recording, trace))
    return found


def _answers(trace: Trace) -> object:
    """What runs of one race have in common."""
    header = trace.header
    return header.model.hash, header.dtype, header.prompt, header.max_new_tokens, dict(header.sampling)


def _lines(race: RecordedRace, lanes: Sequence[tuple[Recording, Trace]]) -> str:
    shows = (
        f"{_NUMBERS[len(lanes)]} methods answer “{race.prompt}” on {lanes[0][0].family}, at the pace that was "
        "recorded. Press Race to run one of your own."
    )
    machine = next(filter(None, (elsewhere(trace.header) for _, trace in lanes)), "")
    text = page_line(title="A recorded race", shows=shows, machine=machine, address="screen=race", recorded=True)
    text += line("race", labels=[recording.label for recording, _ in lanes])
    for lane, (recording, trace) in enumerate(lanes):
        text += in_lane(lane, _lane(recording, trace))
    return text + page_line(done=True, runs=[(recording.label, recording.id) for recording, _ in lanes])


def _lane(recording: Recording, trace: Trace) -> str:
    """The lines of a recording, all steps thin: a race shows texts and times only."""
    play = Play(trace.header, recording.id, cap=0)
    begin = play.begin(trace.texts)
    steps = "".join(play.step(step) for step in trace.steps)
    return begin + steps + play.end(trace.summary, recording.check, recording.speedup)
