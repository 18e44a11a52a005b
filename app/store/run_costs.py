"""Collects what the steps of recorded runs read, wrote and drafted, to project the runs onto other machines."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from analysis.cost.grid import COUNTED
from decoding.errors import TraceError
from decoding.trace.metrics import compression_rate, credible_speedup, written
from decoding.types import Header, Step, Trace

from .lessons import Lessons
from .recordings import RecordedRun, Recordings, task

WINDOWS = "windows"  # what is asked of Lookahead with several windows, which only lessons show
OPEN = "open"  # what is asked of the run in the player, whose steps the page has
_PLAIN = "autoregressive"


class RunCosts:
    """The recorded runs in the groups of the gallery; a group is read at its first use."""

    def __init__(self, recordings: Recordings, lessons: Lessons) -> None:
        self._recordings, self._lessons = recordings, lessons
        self._lock = threading.Lock()
        self._groups = dict[str, list[RecordedRun]]()  # by the id of their first run
        self._answers = dict[str, dict[str, Any]]()
        firsts = dict[tuple[str, str], str]()
        for each in recordings:
            if each.method == _PLAIN:
                continue  # the others are measured against it
            self._groups.setdefault(firsts.setdefault((each.family, each.group), each.id), []).append(each)

    def groups(self) -> list[dict[str, str]]:
        """Return the groups in the order of the gallery."""
        return [{"id": first, "family": runs[0].family, "name": runs[0].group} for first, runs in self._groups.items()]

    def of_trees(self) -> dict[str, dict[str, str]]:
        """Return the ids of pocket's runs by method and tree, such as 16 or k2-w4: a point of the page opens one."""
        names = self._lessons.recordings()
        begins = {method: f"lesson-{method}-" for method in COUNTED}
        return {
            method: {name.removeprefix(begin): name for name in names if name.startswith(begin)}
            for method, begin in begins.items()
        }

    def of(self, asked: object) -> dict[str, Any]:
        """Return the steps of a group's runs after their first, in columns, and what passes over one token took.

        Drafting is given in passes over one token of the same model on the same machine, a ratio that other machines
        share. It is None if no such pass was recorded.
        """
        if not isinstance(asked, str) or (asked not in (OPEN, WINDOWS) and asked not in self._groups):
            raise TraceError("there is no such group of recorded runs: choose another one")
        with self._lock:
            if asked == WINDOWS and asked not in self._answers:
                self._answers[asked] = {"windows": self._windows()}
            elif asked not in self._answers:
                self._answers[asked] = {
                    "runs": [*filter(None, map(self._run, self._groups.get(asked, [])))],
                    "plain": [
                        {"model": model, "recorded": machine, "milliseconds": milliseconds}
                        for (model, machine), milliseconds in self._passes.items()
                    ],
                }
            return self._answers[asked]

    def _windows(self) -> list[dict[str, Any]]:
        """Return what Lookahead wrote with each window, on one prompt."""
        names = [name for name in self._lessons.recordings() if name.startswith("lesson-lookahead-w")]
        windows = [_window(name, self._lessons.trace(name)) for name in names]
        return sorted(windows, key=lambda each: int(each["window"]))

    @cached_property
    def _plain(self) -> list[Trace]:
        """The autoregressive runs."""
        traces = (self._recordings.trace(each.id) for each in self._recordings if each.method == _PLAIN)
        return [trace for trace in traces if trace is not None]

    @cached_property
    def _passes(self) -> dict[tuple[str, str], float]:
        """The mean milliseconds of a pass over one token, by model and machine."""
        steps = dict[tuple[str, str], list[Step]]()
        for trace in self._plain:
            steps.setdefault(_measured_as(trace.header), []).extend(trace.steps[1:])
        return {key: sum(step.timing.forward_ms for step in each) / len(each) for key, each in steps.items() if each}

    def _run(self, recording: RecordedRun) -> dict[str, Any] | None:
        trace = self._recordings.trace(recording.id)
        if trace is None:
            return None
        steps = trace.steps[1:]
        return {
            **{name: getattr(recording, name) for name in ("id", "label", "title", "group", "family")},
            "model": trace.header.model.name,
            "recorded": recorded_on(trace.header),
            "speedup": credible_speedup(recording.speedup, recording.tokens_per_step),
            "later_speedup": self._later_speedup(trace),
            "fed": [step.fed for step in steps],
            "wrote": [len(step.emitted) for step in steps],
            "drafting": self._drafting(trace, steps),
        }

    def _later_speedup(self, trace: Trace) -> float | None:
        """Return the measured speedup of the steps after the first, as a projection counts them.

        None if the same prompt was not decoded autoregressively on the same machine.
        """
        header = trace.header
        plain = next((each for each in self._plain if task(each) == task(trace)), None)
        if plain is None or recorded_on(plain.header) != recorded_on(header):
            return None
        faster = _pace(trace) / _pace(plain) if min(map(len, (trace.steps, plain.steps))) > 1 else None
        return credible_speedup(faster, compression_rate(written(trace.steps[1:])))

    def _drafting(self, trace: Trace, steps: Sequence[Step]) -> list[float] | None:
        plain = self._passes.get(_measured_as(trace.header))
        return [round(step.timing.draft_ms / plain, 4) for step in steps] if plain else None


def _window(name: str, trace: Trace) -> dict[str, Any]:
    params, model = trace.header.params, trace.header.model.name
    wrote = [len(step.emitted) for step in trace.steps[1:]]
    return {"id": name, "model": model, "window": params["W"], "n": params["N"], "wrote": wrote}


def _pace(trace: Trace) -> float:
    """Return the tokens for each millisecond after the first step."""
    steps = trace.steps[1:]
    return sum(len(step.emitted) for step in steps) / sum(step.timing.total_ms for step in steps)


def recorded_on(header: Header) -> str:
    """Return what two runs must share, besides the model, for their times to be comparable."""
    threads = f"{header.threads} thread{'' if header.threads == 1 else 's'}" if header.threads else ""
    return ", ".join(filter(None, (header.processor or header.device, threads, header.dtype)))


def _measured_as(header: Header) -> tuple[str, str]:
    return header.model.name, recorded_on(header)
