"""Whether samples follow a distribution: a chi-square test, its odds of a false alarm, and its power."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, ncx2

Counts = npt.NDArray[np.int64]
Distribution = npt.NDArray[np.float64]

FALSE_ALARM = 1e-6  # the odds that samples of the distribution itself are rejected
FEWEST = 5.0  # samples that a cell must expect, for the statistic to follow the chi-square distribution


def pooled(values: npt.NDArray[np.floating | np.integer], expected: Distribution) -> Distribution:
    """Sum `values` over the rarest cells, so that every cell left expects enough samples."""
    order = np.argsort(expected)
    order = order[expected[order] > 0.0]
    due = expected[order]
    rare = max(int((np.cumsum(due) < FEWEST).sum()) + 1, int((due < FEWEST).sum()))
    return np.array([values[order[:rare]].sum(), *values[order[rare:]]], dtype=np.float64)


def distance_of(counts: Counts, distribution: Distribution) -> float:
    """Return the total variation distance between the samples and the distribution."""
    return float(abs(counts / counts.sum() - distribution).sum() / 2)


def chance(counts: Counts, distribution: Distribution) -> float:
    """Return the chance that samples of the distribution fit it as badly as these; zero if one is impossible."""
    if counts[distribution == 0.0].any():
        return 0.0
    expected = distribution * counts.sum()
    seen, due = pooled(counts, expected), pooled(expected, expected)
    return float(chi2.sf(((seen - due) ** 2 / due).sum(), len(due) - 1))


def power(freedom: int, samples: int, distance: float) -> float:
    """Return the least odds of rejecting independent samples whose distribution is off by `distance`.

    Among all distributions at a total variation distance d, the one that is hardest to see moves every cell by
    the same share, p' = p (1 +- 2d). It gives the statistic a noncentrality of 4 n d^2; every other gives it more, by
    Cauchy and Schwarz: sum (p' - p)^2 / p >= (sum |p' - p|)^2.
    """
    return float(ncx2.sf(chi2.isf(FALSE_ALARM, freedom), freedom, 4 * samples * distance**2))
