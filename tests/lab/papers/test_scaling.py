"""The Lookahead paper's equations: their values, and fits that find what the numbers were made with."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.papers.scaling import ScalingPoint, compression, expected_of_batch, expected_steps, fit, fit_line

GRID = [(gamma, b) for gamma in (2, 4, 6) for b in (1, 2, 4, 8, 16, 32)]


@given(st.floats(0.0, 0.999), st.integers(1, 20))
def test_equation_5_is_equation_4_for_one_sequence(alpha: float, gamma: int) -> None:
    assert expected_of_batch(alpha, gamma) == pytest.approx((1 - alpha ** (gamma + 1)) / (1 - alpha))


def test_more_sequences_write_more_but_never_more_than_all() -> None:
    values = [expected_of_batch(0.4, 5, b) for b in (1, 2, 8, 64, 10_000_000)]
    assert values == sorted(values) and values[-1] == pytest.approx(6.0, abs=0.01)
    assert expected_of_batch(1.0, 5, 3) == 6.0 and expected_of_batch(0.0, 5, 3) == 1.0


def test_two_sequences_of_one_token_by_hand() -> None:
    """Both guesses fail with the chance (1 - alpha)^2; then one token is written, else two."""
    assert expected_of_batch(0.3, 1, 2) == pytest.approx(1 * 0.49 + 2 * 0.51)
    assert compression(0.3, 4.0, 1, 2) == pytest.approx((3 + 1.51) / 4)


@pytest.mark.parametrize(("alpha", "f"), [(0.425, 3.106), (0.9, 1.0), (0.05, 8.0), (0.7, 1.5)])
def test_the_fit_finds_what_the_numbers_were_made_with(alpha: float, f: float) -> None:
    fitted = fit([ScalingPoint(gamma, b, compression(alpha, f, gamma, b)) for gamma, b in GRID])
    assert fitted is not None
    assert fitted.alpha == pytest.approx(alpha, abs=1e-4) and fitted.f == pytest.approx(f, rel=1e-3)
    assert fitted.explained == pytest.approx(1.0)


def test_a_little_noise_moves_the_fit_little() -> None:
    noise = random.Random(0)
    fitted = fit(
        [ScalingPoint(gamma, b, compression(0.425, 3.106, gamma, b) + noise.gauss(0, 0.01)) for gamma, b in GRID]
    )
    assert fitted is not None
    assert fitted.alpha == pytest.approx(0.425, abs=0.03) and fitted.f == pytest.approx(3.106, rel=0.06)
    assert 0.98 < fitted.explained < 1.0


def test_numbers_of_another_shape_are_not_explained() -> None:
    """A fit that explained anything would be no check."""
    fitted = fit([ScalingPoint(gamma, b, 1.5 + 0.3 * ((gamma + b) % 3)) for gamma, b in GRID])
    assert fitted is not None and fitted.explained < 0.5 and fitted.f >= 1.0


def test_nothing_above_one_token_cannot_be_fitted() -> None:
    assert fit([ScalingPoint(gamma, b, 1.0) for gamma, b in GRID]) is None
    assert fit([]) is None


def test_a_line() -> None:
    drawn = fit_line([0, 1, 2, 3], [1.0, 1.5, 2.0, 2.5])
    assert (drawn.slope, drawn.start, drawn.explained) == pytest.approx((0.5, 1.0, 1.0))
    assert fit_line([0, 1, 2, 3], [1.0, -1.0, 1.0, -1.0]).explained < 0.3
    assert fit_line([0, 1], [2.0, 2.0]).slope == 0.0


def count_steps(accepted: tuple[bool, ...], gamma: int) -> int:
    """Speculative decoding's steps over a text, told in words: up to gamma accepted guesses, and one token more."""
    place = steps = 0
    while place < len(accepted):
        guesses = 0
        while guesses < gamma and place < len(accepted) and accepted[place]:
            guesses, place = guesses + 1, place + 1
        place, steps = place + 1, steps + 1
    return steps


@pytest.mark.parametrize("gamma", [1, 2, 3, 9])
def test_expected_steps_are_the_mean_over_all_outcomes(gamma: int) -> None:
    chances, mean = (0.9, 0.2, 0.5, 1.0, 0.0, 0.7), 0.0
    for outcome in product((True, False), repeat=len(chances)):
        weight = 1.0
        for chance, accepted in zip(chances, outcome, strict=True):
            weight *= chance if accepted else 1 - chance
        mean += weight * count_steps(outcome, gamma)
    assert expected_steps(chances, gamma) == pytest.approx(mean)


def test_with_equal_chances_a_long_text_follows_equation_4() -> None:
    tokens = 20_000
    assert tokens / expected_steps([0.6] * tokens, 4) == pytest.approx(expected_of_batch(0.6, 4), rel=1e-3)
