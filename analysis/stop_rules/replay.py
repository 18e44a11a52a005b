"""The result of a stop rule on a record, and its certainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ..metrics.columns import Array

# Estimated tokens per step are off by at most this share on the shipped models: tests/stop_rules/test_truth.py.
MARGIN = 0.15


class Certainty(Enum):
    """How certain the numbers of a replayed rule are."""

    EXACT = "exact"  # a run with these settings takes these very steps
    BOUNDED = "bounded"  # it takes a number of steps between two that are exact
    ESTIMATED = "estimated"  # it takes about as many, under a stated assumption


@dataclass(frozen=True, slots=True)
class RulePath:
    """The steps that a rule takes through the recorded texts, those that read the prompts left out."""

    steps: int  # all of them, the first of every run included
    tokens: int  # that the later steps write
    verified: Array  # guesses that the target reads, by later step
    drafted: Array  # guesses that the drafter writes, by later step

    def __len__(self) -> int:
        return len(self.verified)


@dataclass(frozen=True, slots=True)
class Replay:
    """A rule's steps, with the fewest that they can be where the record leaves some open."""

    certainty: Certainty
    because: str
    slow: RulePath  # every guess that the record lacks is wrong
    fast: RulePath | None = None  # every guess that the record lacks is right
    right: float = 0.5  # expected share of these guesses that are right; unknown, the middle is off by the least

    @property
    def steps(self) -> float:
        """Return the steps of all runs, the first ones included."""
        return self._mixed(self.slow.steps, None if self.fast is None else self.fast.steps)

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Return the fewest and the most steps that the rule can take; None if they are estimated."""
        if self.certainty is Certainty.ESTIMATED:
            return None
        return (self.fast or self.slow).steps, self.slow.steps

    @property
    def tokens_per_step(self) -> float:
        """Return the tokens that a step after the first writes."""
        return self._per_step([path.tokens for path in self._paths])

    def per_step(self, cost: Callable[[Array], Array]) -> float:
        """Average over the later steps what verifying their guesses costs."""
        return self._per_step([float(cost(path.verified).sum()) for path in self._paths])

    @property
    def verified_per_step(self) -> float:
        """Return the guesses that the target reads in a step after the first."""
        return self._per_step([float(path.verified.sum()) for path in self._paths])

    @property
    def drafted_per_step(self) -> float:
        """Return the guesses that the drafter writes in a step after the first."""
        return self._per_step([float(path.drafted.sum()) for path in self._paths])

    @property
    def _paths(self) -> tuple[RulePath, RulePath]:
        return self.slow, self.fast or self.slow

    def _mixed(self, slow: float, fast: float | None) -> float:
        return slow if fast is None else slow + self.right * (fast - slow)

    def _per_step(self, sums: list[float]) -> float:
        steps = self._mixed(len(self._paths[0]), len(self._paths[1]))
        return self._mixed(sums[0], sums[1]) / steps if steps else 0.0
