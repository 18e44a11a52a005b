"""Intervals hold what they promise, few questions included."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.metrics import intervals, measure

from .simulated import chains


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (9, 2.2622), (29, 2.0452), (10_000, 1.9602)],
)
def test_students_quantiles(freedom: int, quantile: float) -> None:
    """From the table of any textbook."""
    assert intervals.student(freedom) == pytest.approx(quantile, rel=2e-2 if freedom == 3 else 5e-3)


def test_wilson_without_cases_is_unknown() -> None:
    low, high = intervals.wilson(np.array([0, 0, 5]), np.array([0, 5, 5]))
    assert math.isnan(low[0]) and math.isnan(high[0])
    assert (low[1], high[2]) == (0.0, 1.0)
    assert high[1] == pytest.approx(1 - low[2]) == pytest.approx(1.96**2 / (5 + 1.96**2), abs=1e-3)


def test_a_question_counts_with_all_its_steps() -> None:
    """Steps of a question depend on each other: 400 steps of two questions know no more than two numbers."""
    few = intervals.ratio(np.array([100.0, 300.0]), np.array([100.0, 100.0]))
    assert few[0] == 2.0 and few[1] == 1.0 and few[2] == 3.0


def test_seeded() -> None:
    """The same folder says the same twice."""
    one, other = (measure("mean_acceptance_length", chains(3)) for _ in range(2))
    assert one == other and one["low"] < one["value"] < one["high"]  # type: ignore[operator]


def test_intervals_cover_the_truth() -> None:
    """Of 200 records of ten questions each, drawn from all questions there are, about 95% hold the true mean."""
    random, held = np.random.default_rng(0), 0
    for _ in range(200):
        means = random.gamma(4, 0.5, 10)  # of mean 2, and skew
        steps = random.integers(5, 50, 10)
        _, low, high = intervals.ratio(means * steps, steps)
        held += bool(low <= 2 <= high)
    assert 0.88 <= held / 200 <= 0.99
