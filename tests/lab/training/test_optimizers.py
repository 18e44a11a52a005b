"""Learning-rate schedules."""

from __future__ import annotations

import pytest

from lab.training.optimizers import cosine_share, plateau_share


def test_the_rate_rises_and_falls_as_half_a_cosine() -> None:
    shares = [cosine_share(step, 100, warm_up=10) for step in range(100)]
    assert shares[0] == pytest.approx(0.1, rel=0.01) and shares[9] > 0.95
    assert shares[50] == pytest.approx(0.5) and 0 < shares[99] < 0.001
    frozen = [cosine_share(step, 100, warm_up=10, start=0.5) for step in range(100)]
    assert frozen[50] == pytest.approx(0.1, rel=0.01) and frozen[75] == pytest.approx(0.5)


def test_the_rate_rises_stays_and_falls_to_nothing() -> None:
    shares = [plateau_share(step, 1000) for step in range(1000)]
    assert 0 < shares[0] < shares[30] < shares[100] == shares[400] == 1.0 > shares[700] > shares[999] > 0
