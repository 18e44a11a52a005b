"""Decides whether a changed wiring is better than the one it was changed from, and puts it in words.

Both were measured on the same prompts, so their differences are compared prompt by prompt: a bootstrap over prompts
gives an interval of the mean difference, wider for the number of probes (Bonferroni) and for few prompts (as Student's
distribution is wider than the normal one). A probe is better if all of its interval is above zero, or if its first
guesses are surely and much closer to the target's distributions, and in either case the gain is material.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

from decoding.types import JSON

from .fit import FitChange
from .measure import AcceptedGuesses
from .probes import Check, Probe

LEAST_GAIN = 0.02  # of the tokens per step: less is not worth a change
_NEARLY = 0.2  # of a gain, which its interval may reach below zero: chance of one in a hundred, not in a thousand
FEWEST = 4  # prompts: with fewer, an interval means nothing
_DRAWS = 10_000
_ERROR = 0.05  # of all probes together


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """A probe beside the wiring that it changes one entry of."""

    probe: Probe
    given: AcceptedGuesses
    other: AcceptedGuesses
    interval: tuple[float, float]  # of the difference in tokens per step
    fit: FitChange | None = None  # what it does to the first guesses' distance from the target's distributions
    adds_more: bool = True  # than the given wiring, to what the target's own layers guess without the drafter

    @property
    def gain(self) -> float:
        """Tokens per step that the change brings."""
        return self.other.tokens_per_step - self.given.tokens_per_step

    @property
    def is_better(self) -> bool:
        """Return True if the change is better, significantly and materially."""
        nearer = self.fit is not None and self.fit.is_better
        return (self.interval[0] > 0.0 or nearer) and self._is_material

    @property
    def may_be_better(self) -> bool:
        """Return True if the change is materially better, and so nearly sure that more texts may show it."""
        return not self.is_better and self._is_material and self.interval[0] >= -_NEARLY * self.gain

    @property
    def _is_material(self) -> bool:
        return self.adds_more and self.gain >= LEAST_GAIN * self.given.tokens_per_step

    def to_json(self) -> dict[str, JSON]:
        """Return the row of a report."""
        return {
            "name": self.probe.name,
            "flag": self.probe.flag,
            "given": self.probe.given,
            "other": self.probe.other,
            "tokens_per_step": round(self.other.tokens_per_step, 4),
            "gain": round(self.gain, 4),
            "interval": [round(end, 4) for end in self.interval],
            "acceptance": [round(share, 4) for share in self.other.survival],
        }


@dataclass(frozen=True, slots=True)
class Fault:
    """An entry that is wrong; the numbers are None if the files alone show it."""

    name: str
    flag: str
    given: JSON
    better: JSON
    tokens_per_step_given: float | None
    tokens_per_step_better: float | None
    interval: tuple[float, float] | None  # of the difference
    sentence: str

    @classmethod
    def measured(cls, outcome: ProbeOutcome) -> Fault:
        """Make a fault of a better probe."""
        probe, given, better = outcome.probe, outcome.given.tokens_per_step, outcome.other.tokens_per_step
        low, high = (round(end, 4) for end in outcome.interval)
        sentence = f"with {probe.name}, {better:.2f} tokens per step instead of {given:.2f}: {probe.remedy}"
        values = probe.given, probe.other, round(given, 4), round(better, 4)
        return cls(probe.name, probe.flag, *values, (low, high), sentence)

    @classmethod
    def seen(cls, check: Check) -> Fault:
        """Make a fault of what the files show."""
        return cls(check.name, check.flag, check.given, check.better, None, None, None, check.sentence)

    def to_json(self) -> dict[str, JSON]:
        """Return the entry of a report."""
        return {**asdict(self), "interval": None if self.interval is None else [*self.interval]}


def compare(
    probe: Probe,
    given: AcceptedGuesses,
    other: AcceptedGuesses,
    probes: int,
    seed: int,
    fit: FitChange | None = None,
    adds_more: bool = True,
) -> ProbeOutcome:
    """Compare a probe with the given wiring, as one of so many probes."""
    return ProbeOutcome(probe, given, other, interval(given, other, _ERROR / probes, seed), fit, adds_more)


def interval(given: AcceptedGuesses, other: AcceptedGuesses, error: float, seed: int) -> tuple[float, float]:
    """Return the interval of the difference in tokens per step, which misses it with a chance of `error`."""
    count = len(given.places)
    rows = np.random.default_rng(seed).integers(0, count, (_DRAWS, count))
    gains, places = other.accepted - given.accepted, given.places
    mean = gains.sum() / places.sum()
    drawn = gains[rows].sum(1) / places[rows].sum(1)
    low, high = np.quantile(drawn, (error / 2, 1 - error / 2))
    wider = sqrt(count / (count - 1)) * _student_share(1 - error / 2, count - 1)
    return float(mean + wider * (low - mean)), float(mean + wider * (high - mean))


def _student_share(chance: float, freedom: int) -> float:
    """Return a quantile of Student's distribution over the normal one's, by its series in 1 / freedom."""
    z, n = NormalDist().inv_cdf(chance), float(freedom)
    second, third = (z**2 + 1) / 4, (5 * z**4 + 16 * z**2 + 3) / 96
    fourth = (3 * z**6 + 19 * z**4 + 17 * z**2 - 15) / 384
    return 1 + second / n + third / n**2 + fourth / n**3
