"""Heads and guesses that are right too seldom are told from those that few texts show so by chance."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.doctor.evidence import check_fall
from analysis.doctor.heads import HeadShare, check_heads
from analysis.doctor.measure import AcceptedGuesses


def heads(places: int, *shares: tuple[float, float]) -> list[HeadShare]:
    return [HeadShare(right, blind, places) for right, blind in shares]


SMOLLM2 = [(0.26, 0.09), (0.09, 0.07), (0.08, 0.07), (0.05, 0.06)]  # heads that work, in a sample of 119 places


def test_a_weak_head_needs_many_places_to_be_called_wrong() -> None:
    assert check_heads(heads(119, *SMOLLM2)).fine
    assert not check_heads(heads(11_900, *SMOLLM2)).fine


@pytest.mark.parametrize(
    ("at", "right", "named"),
    [(1, 0.0, "head 2:"), (1, 0.02, "head 2:"), (0, 0.02, "head 1:"), (3, 0.0, "head 4:")],
)
def test_a_dead_head_among_good_ones_is_found_at_few_places(at: int, right: float, named: str) -> None:
    shares = [(0.6, 0.07), (0.45, 0.07), (0.4, 0.07), (0.35, 0.07)]
    assert check_heads(heads(119, *shares)).fine
    shares[at] = (right, 0.07)
    found = check_heads(heads(119, *shares))
    assert not found.fine and found.sentence.startswith(named), found.sentence


def test_heads_behind_a_dead_one_that_say_the_commonest_token_are_found_too() -> None:
    found = check_heads(heads(119, (0.6, 0.07), *[(0.07, 0.07)] * 3))
    assert found.sentence.startswith("heads 2, 3 and 4"), found.sentence


def measured(steps: int, *kept: float) -> AcceptedGuesses:
    """So many steps, in which each guess is right as often as `kept` says where all before it were."""
    survival = tuple(np.cumprod(kept).tolist())
    return AcceptedGuesses(np.array([sum(survival) * steps]), np.array([float(steps)]), survival)


def test_a_guess_that_falls_needs_many_steps_too() -> None:
    assert check_fall(measured(100, 0.5, 0.18, 0.5)).fine
    assert not check_fall(measured(10_000, 0.5, 0.18, 0.5)).fine
    assert not check_fall(measured(100, 0.5, 0.0, 0.5)).fine
    assert check_fall(measured(200, 0.1, 0.0, 0.5)).fine  # none of 20, of which one might have been right


def test_a_certain_fall_is_told_beside_one_of_chance() -> None:
    """The lowest share may be of a few steps."""
    fallen = check_fall(measured(400, 0.6, 0.15, 0.14, 0.9))
    assert not fallen.fine and fallen.sentence.startswith("guess 2 is right in 15%"), fallen.sentence
