"""Expected tokens of a step: equations 4 to 7 of the Lookahead paper, arXiv 2402.02057, and fits to them.

symbol  meaning
alpha   chance that a guess is accepted, the same for all of them
gamma   tokens of a guessed sequence
b       sequences guessed at once
f       steps per good speculation: the f-1 others write one token each
S       tokens per step
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_COARSE, _ROUNDS = 200, 60  # points of the first search for alpha, and halvings of the second


def expected_of_batch(alpha: float, gamma: int, b: int = 1) -> float:
    """Compute equation 5; for one sequence it is equation 4, (1 - alpha^(gamma+1)) / (1 - alpha)."""
    return gamma + 1 - sum((1 - alpha**i) ** b for i in range(1, gamma + 1))


def compression(alpha: float, f: float, gamma: int, b: int) -> float:
    """Compute equation 7: S where every f-th step has good speculations."""
    return (f - 1 + expected_of_batch(alpha, gamma, b)) / f


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """A measured S."""

    gamma: int
    b: int
    S: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The alpha and f that come closest, and the share of S's variance that they explain."""

    alpha: float
    f: float
    explained: float


def fit(points: Sequence[ScalingPoint]) -> Fit | None:
    """Fit by least squares; None if no step ever wrote more than one token, so that every f fits.

    S - 1 is 1/f times what a good speculation adds, so the best f for an alpha is known. Alpha is searched: over the
    whole range first, then by golden section around the best point.
    """
    if not points or max(point.S for point in points) <= 1.0:
        return None
    best = min(range(1, _COARSE), key=lambda i: _error(i / _COARSE, points)) / _COARSE
    low, high, shrink = best - 1 / _COARSE, best + 1 / _COARSE, (5**0.5 - 1) / 2
    for _ in range(_ROUNDS):
        left, right = high - shrink * (high - low), low + shrink * (high - low)
        if _error(left, points) <= _error(right, points):
            high = right
        else:
            low = left
    alpha = (low + high) / 2
    mean = sum(point.S for point in points) / len(points)
    spread = sum((point.S - mean) ** 2 for point in points)
    return Fit(alpha, 1 / _share(alpha, points), 1 - _error(alpha, points) / spread if spread else 1.0)


def _gain(alpha: float, point: ScalingPoint) -> float:
    return expected_of_batch(alpha, point.gamma, point.b) - 1


def _share(alpha: float, points: Sequence[ScalingPoint]) -> float:
    """Return the best 1/f for an alpha: f is at least 1."""
    gains = [_gain(alpha, point) for point in points]
    least = 1e-9  # where all S are below 1 on average; a share of nothing would divide by it
    above = sum(gain * (point.S - 1) for gain, point in zip(gains, points, strict=True))
    return min(1.0, max(least, above / max(least, sum(gain**2 for gain in gains))))


def _error(alpha: float, points: Sequence[ScalingPoint]) -> float:
    share = _share(alpha, points)
    return sum((point.S - 1 - share * _gain(alpha, point)) ** 2 for point in points)


@dataclass(frozen=True, slots=True)
class Line:
    """The straight line that comes closest, and the share of the variance that it explains."""

    slope: float
    start: float
    explained: float


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """Fit a line by least squares through at least two different points."""
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    across = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    along, spread = sum((a - x) ** 2 for a in xs), sum((b - y) ** 2 for b in ys)
    slope = across / along
    return Line(slope, y - slope * x, across**2 / (along * spread) if spread else 1.0)


def expected_steps(chances: Sequence[float], gamma: int) -> float:
    """Count the steps that write a text if guess i is accepted with the chance `chances[i]`, gamma guesses a step.

    Unlike equation 4 this takes no guess for as good as another: a step begins where the one before it ended.
    """
    begins = [1.0] + [0.0] * (len(chances) + gamma)  # the chance that a step begins at a token
    for start in range(len(chances)):
        reached = begins[start]
        for place in range(start, min(start + gamma, len(chances))):
            begins[place + 1] += reached * (1 - chances[place])
            reached *= chances[place]
        begins[min(start + gamma, len(chances)) + 1] += reached
    return sum(begins[: len(chances)])
