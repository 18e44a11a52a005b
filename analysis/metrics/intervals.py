"""Intervals of 95%: Wilson's for a share of counted cases, the bootstrap's over questions for everything else."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from .columns import Array

LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_RESAMPLES = 1000
CLUSTERS = 4096  # more questions than these are drawn in groups, which is as good and bounds the memory: 16 MB


def wilson(hits: Array, cases: Array) -> tuple[Array, Array]:
    """Compute Wilson's score interval of shares; NaN where there was no case."""
    hits, cases = np.asarray(hits, float), np.asarray(cases, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = hits / cases
        middle = (rate + _Z**2 / (2 * cases)) / (1 + _Z**2 / cases)
        half = _Z / (1 + _Z**2 / cases) * np.sqrt(rate * (1 - rate) / cases + _Z**2 / (4 * cases**2))
    return np.maximum(0.0, middle - half), np.minimum(1.0, middle + half)


@lru_cache(maxsize=2)
def weights(questions: int) -> Array:
    """Draw how often each resample holds each question; the same for every metric, so that all agree."""
    random = np.random.default_rng(0)
    drawn = np.empty((_RESAMPLES, questions), np.float32)
    for row in drawn:
        row[:] = np.bincount(random.integers(0, questions, questions), minlength=questions)
    return drawn


def folded(values: Array) -> Array:
    """Fold sums by question (the first axis) into at most `CLUSTERS` sums by cluster."""
    if len(values) <= CLUSTERS:
        return values
    padding = [(0, -len(values) % CLUSTERS), *[(0, 0)] * (values.ndim - 1)]
    return np.asarray(np.pad(values, padding).reshape(-1, CLUSTERS, *values.shape[1:]).sum(0))


def ratio(above: Array, below: Array) -> tuple[Array, Array, Array]:
    """Compute ratios of sums over questions (the first axis) with their intervals, one for each further column.

    A question is drawn with all its steps, since these depend on each other. NaN marks a ratio that there is
    not, and for an interval of fewer than two questions.
    """
    above, below = (folded(np.asarray(values, float)) for values in (above, below))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = above.sum(0) / below.sum(0)
        if len(above) < 2:
            nothing = np.full_like(value, np.nan)
            return value, nothing, nothing
        drawn = weights(len(above))
        spread = (drawn @ above.astype(np.float32)) / (drawn @ below.astype(np.float32))
    low, high = bounds(spread, (below != 0).sum(0))
    return value, low, high


def of_sums(sums: Array, function: Callable[[Array], Array]) -> tuple[Array, Array, Array]:
    """Apply a function to sums over questions (the first axis), with intervals.

    `function` takes sums in its last axis, and gives its numbers there; NaN marks one that there is not.
    """
    sums = folded(np.asarray(sums, float))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = function(sums.sum(0))
        if len(sums) < 2:
            return value, np.full_like(value, np.nan), np.full_like(value, np.nan)
        spread = function(weights(len(sums)) @ sums.astype(np.float32))
    low, high = bounds(spread, np.full(value.shape, int(sums.any(1).sum())))
    return value, low, high


def bounds(spread: Array, questions: Array) -> tuple[Array, Array]:
    """Compute the interval from resamples, widened for few questions as in Hesterberg (2015), section 4.

    Percentiles alone are too narrow by sqrt((n - 1) / n) and take the normal distribution where Student's belongs.
    """
    columns = spread.reshape(len(spread), -1)
    low, high = np.full(columns.shape[1], np.nan), np.full(columns.shape[1], np.nan)
    for place, count in enumerate(np.atleast_1d(questions)):
        values = columns[:, place]
        values = values[np.isfinite(values)]
        if count >= 2 and len(values):
            tail = NormalDist().cdf(-math.sqrt(count / (count - 1)) * student(int(count) - 1))
            low[place], high[place] = np.quantile(values, (tail, 1 - tail))
    return low.reshape(spread.shape[1:]), high.reshape(spread.shape[1:])


def student(freedom: int) -> float:
    """Compute the quantile of Student's t of a two-sided interval, by the expansion of Cornish and Fisher."""
    if freedom == 1:
        return math.tan(math.pi * LEVEL / 2)
    if freedom == 2:
        return LEVEL * math.sqrt(2 / (1 - LEVEL**2))
    z, n = _Z, freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + first / n + second / n**2 + third / n**3 + fourth / n**4
