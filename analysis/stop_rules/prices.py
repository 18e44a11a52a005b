"""Prices a replayed rule's steps: passes as measured on a device, drafting in the recorded proportion to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..cost.curves import PassCurve
from ..metrics.result import UnknownError
from ..metrics.selection import Selection
from ..metrics.times import later_steps
from .replay import MARGIN, Certainty, Replay

UNMEASURED = "this record's passes read up to {} tokens, and passes over more than {} were not measured on this device"
UNTIMED = "the record does not time drafting beside the target's passes: give --draft-ms"


@dataclass(frozen=True, slots=True)
class Prices:
    """Milliseconds of a step."""

    costs: PassCurve
    drafting: float
    per_guess: bool  # whether `drafting` is that of a drafted guess; else of a step

    @classmethod
    def of(cls, selection: Selection, costs: PassCurve, draft_ms: float | None, *, per_guess: bool) -> Prices:
        """Price drafting at `draft_ms` per guess, or in its recorded proportion to the passes."""
        steps = selection.steps
        most = 1 + int(np.nan_to_num(steps.maybe("drafted")[steps.number("step") > 0]).max(initial=0))
        if most > costs.rows[-1]:
            raise UnknownError(UNMEASURED.format(most, costs.rows[-1]))
        if draft_ms is not None:
            return cls(costs, draft_ms, per_guess)
        later = later_steps(selection)
        draft, forward, guesses = (steps.maybe(name)[later] for name in ("draft_ms", "forward_ms", "drafted"))
        timed = ~np.isnan(draft + forward + guesses)
        spent, passes = draft[timed].sum(), forward[timed].sum()
        amount = guesses[timed].sum() if per_guess else timed.sum()
        if not (passes > 0 and amount > 0 and np.isfinite(spent)):
            raise UnknownError(UNTIMED)
        scale = costs.times(1 + guesses[timed]).sum() / passes
        return cls(costs, float(spent * scale / amount), per_guess)

    def speedup(self, replay: Replay) -> float | None:
        """Return the speed-up over writing the same tokens one by one; None if a pass was not measured."""
        if not len(replay.slow):
            return None
        verifying = replay.per_step(lambda guesses: self.costs.times(1 + guesses))
        drafting = self.drafting * (replay.drafted_per_step if self.per_guess else 1.0)
        single = self.costs.milliseconds[0]
        speedup = replay.tokens_per_step * single / (verifying + drafting)
        return None if np.isnan(speedup) else speedup

    def least_speedup(self, replay: Replay) -> float | None:
        """Return the speed-up if every guess that the record lacks is wrong; of an estimate, less its margin."""
        if replay.certainty is Certainty.ESTIMATED:
            expected = self.speedup(replay)
            return None if expected is None else expected / (1.0 + MARGIN)
        return self.speedup(replace(replay, fast=None))
