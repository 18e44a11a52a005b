"""A record laid out by the positions of its texts.

Every position that a run could begin a step at lies on the accepted path of one recorded step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..metrics.columns import Array
from ..metrics.result import UnknownError
from ..metrics.selection import Selection

_CUT_OFF = ("cancelled", "time", "error")  # finishes of runs whose last draft may have been interrupted


@dataclass(frozen=True, slots=True)
class Positions:
    """The steps of a selection, and the positions of its texts, numbered through all runs."""

    first: Array  # (R,) each run's first position
    end: Array  # (R,) and the one after its last
    start: Array  # (S,) the position that a recorded step begins at
    accepted: Array  # (S,) guesses that it accepted
    cut_off: Array  # (S,) whether its draft may have been interrupted
    step: Array  # (P,) the recorded step whose accepted path a position lies on
    offset: Array  # (P,) and how far along it
    room: Array  # (P,) guesses that may still be written; infinite where the budget is unknown
    limit: Array  # (P,) the end of the position's run
    reads_prompt: Array  # (P,) whether a run begins there

    @classmethod
    def of(cls, selection: Selection) -> Positions:
        """Lay a selection out; raise UnknownError unless all steps of its runs are there, one after the other."""
        begins = _first_steps(selection)
        run = selection.run_of_step
        written, accepted = (selection.steps.maybe(name).astype(np.int64) for name in ("written", "accepted"))
        end = np.append(begins[1:], len(written))
        positions = np.concatenate(([0], written.cumsum()))
        codes, texts = selection.runs.columns.codes("finish")
        finish = np.array([*texts, ""])[codes[selection.runs.rows]]
        step = np.repeat(np.arange(len(written)), written)
        limit = positions[end][run[step]]
        cut_off = np.zeros(len(written), bool)
        cut_off[end[np.isin(finish, _CUT_OFF)] - 1] = True
        reads_prompt = np.zeros(len(step), bool)
        reads_prompt[positions[begins]] = True
        return cls(
            first=positions[begins],
            end=positions[end],
            start=positions[:-1],
            accepted=accepted,
            cut_off=cut_off,
            step=step,
            offset=np.arange(len(step)) - positions[step],
            room=np.where(finish[run[step]] == "length", limit - np.arange(len(step)) - 1.0, np.inf),
            limit=limit,
            reads_prompt=reads_prompt,
        )

    def next_step(self, step: Array) -> Array:
        """Return the positions at which the steps after these begin."""
        return np.asarray(np.append(self.start, len(self.step))[step + 1])

    def after(self, accepted: Array) -> Array:
        """Return where the next step begins, for every position, if a step there accepts `accepted` guesses."""
        return np.minimum(np.arange(len(self.step)) + accepted + 1, self.limit)

    def walk(self, after: Array) -> Array:
        """Return the positions that steps begin at, from each run's first, in their order."""
        jump, reached = np.append(after, len(after)), np.zeros(len(after) + 1, bool)
        reached[self.first] = True
        for _ in range(int((self.end - self.first).max()).bit_length()):  # 1, 2, 4, ... steps further
            reached[jump[np.flatnonzero(reached)]] = True
            jump = jump[jump]
        return np.flatnonzero(reached[:-1])


def _first_steps(selection: Selection) -> Array:
    """Return each run's first step."""
    steps, run = selection.steps, selection.run_of_step
    if not len(steps):
        raise UnknownError("no step is chosen")
    number = steps.maybe("step").astype(np.int64)
    begins = np.flatnonzero(np.append(True, run[1:] != run[:-1]))
    if len(begins) != len(selection.runs) or number[begins].any():
        raise UnknownError("some run of this record lacks its first steps")
    written, accepted = steps.maybe("written"), steps.maybe("accepted")
    if (accepted >= np.bincount(selection.step_of_node, minlength=len(steps))).any():
        raise UnknownError("this record accepts more guesses than it holds: its guesses were left out")
    within = np.ones(len(run), bool)
    within[begins] = False
    if (np.diff(number)[within[1:]] != 1).any() or not selection.complete.all():
        raise UnknownError("some run of this record lacks steps")
    last = np.append(~within[1:], True)
    if (
        (written < 1).any()
        or (written > accepted + 1).any()
        or (accepted > written).any()
        or ((written <= accepted) & ~last).any()
    ):
        raise UnknownError("this record's steps do not write what they accept")
    return begins
