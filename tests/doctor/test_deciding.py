"""A change of a drafter wins where it is better beyond what chance explains, for all changes together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analysis.doctor.measure import AcceptedGuesses
from analysis.doctor.medusa import MedusaWiring
from analysis.doctor.probes import Probe
from analysis.doctor.verdict import ProbeOutcome, compare


def measured(accepted_guesses: Sequence[float]) -> AcceptedGuesses:
    return AcceptedGuesses(np.array(accepted_guesses, dtype=float), np.full(len(accepted_guesses), 10.0), ())


def wins(given: Sequence[float], other: Sequence[float], probes: int) -> bool:
    return outcome_of(given, other, probes).is_better


def outcome_of(given: Sequence[float], other: Sequence[float], probes: int) -> ProbeOutcome:
    probe = Probe("probe", "flag", False, True, MedusaWiring(()), "")
    return compare(probe, measured(given), measured(other), probes, 0)


def test_a_gain_in_every_text_wins_and_one_in_some_does_not() -> None:
    given = [10.0] * 12
    assert wins(given, [13.0, 14.0] * 6, 20)
    assert not wins(given, [30.0, *[9.5] * 11], 20), "one text gains much, all others lose"
    assert not wins(given, given, 20)


def test_a_sure_but_tiny_gain_does_not_win() -> None:
    assert not wins([10.0] * 12, [10.1] * 12, 20)


def test_more_probes_need_more_evidence() -> None:
    """The same gain that one probe shows is too little among two hundred."""
    gains = np.random.default_rng(3).normal(0, 4, 16)
    given = [100.0] * 16  # of ten places each: the mean gain below is material at once
    other = [*(100.0 + gains - gains.mean() + 3.5)]
    assert wins(given, other, 1) and not wins(given, other, 200)
    assert outcome_of(given, other, 5).may_be_better and not outcome_of(given, other, 1).may_be_better
    assert not replace(outcome_of(given, other, 5), adds_more=False).may_be_better
    assert not replace(outcome_of(given, other, 1), adds_more=False).is_better


def test_noise_wins_as_seldom_as_it_may() -> None:
    """Of 60 examinations of eight probes that change nothing, one in twenty may be wrong: of 300, 7 were."""
    generator, wrong = np.random.default_rng(7), 0
    for _ in range(60):
        given = generator.normal(10, 3, 12)
        wrong += any(wins([*given], [*given + generator.normal(0, 3, 12)], 8) for _ in range(8))
    assert wrong <= 3
