"""A difference is named where there is one, where it is, and not where there is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from analysis.metrics import Selection, compared, measure

from .simulated import chains
from .tables import run, selection, step


def test_differences_are_paired_by_question() -> None:
    """Before: a 2 tokens per step, b 4; after: b 5, a 3, and c, which is in one only. (3 + 5)/2 - (2 + 4)/2 = 1."""
    before = selection([run(0, "a"), run(1, "b")], [step(1, 1, 3), step(1, 3, 3, of=1)])
    after = selection(
        [run(0, "b"), run(1, "c"), run(2, "a")], [step(1, 4, 4), step(1, 9, 9, of=1), step(1, 2, 3, of=2)]
    )
    comparison = compared(before, after)
    assert comparison["rows"][0][:5] == ["all", "mean acceptance length", 3.0, 4.0, 1.0]
    assert comparison["value"] == 1.0
    assert comparison["low"] == comparison["high"] == 1.0  # both questions gained one: no spread
    rate = next(row for row in comparison["rows"] if row[1] == "draft acceptance rate")
    assert rate[2:4] == [pytest.approx(4 / 6), pytest.approx(6 / 7)]
    assert "2 questions in common are too few" in comparison["sentence"]


def test_no_common_question_is_an_answer() -> None:
    comparison = compared(selection([run(0, "a")], [step(0, 0)]), selection([run(0, "b")], [step(0, 0)]))
    assert comparison["reason"] == "the two have no question in common"


def test_equal_runs_are_no_difference() -> None:
    comparison = compared(chains(1), chains(1))
    assert comparison["value"] == 0.0 and "no difference beyond noise" in comparison["sentence"]
    assert not any(row[8] for row in comparison["rows"])


def test_a_cliff_is_named_where_it_is() -> None:
    """A window too short breaks position 3 and those after it, everywhere."""
    comparison = compared(chains(1), chains(2, rates=(0.8, 0.7, 0.2, 0.1)))
    assert comparison["sentence"].startswith("Acceptance fell from 3.")
    assert "at positions 3 and later" in comparison["sentence"]
    assert "position 1" not in comparison["sentence"] and comparison["low"] < comparison["high"] < 0


def test_a_category_is_named_where_it_alone_has_changed() -> None:
    comparison = compared(chains(1), chains(2, lost={"code": (0.4, 0.4, 0.4, 0.4)}))
    assert "fell" in comparison["sentence"] and "on code" in comparison["sentence"]
    assert "chat" not in comparison["sentence"] and "math" not in comparison["sentence"]


def test_a_gain_in_one_place_may_hide_a_loss_in_another() -> None:
    """The mean alone would say that nothing happened."""
    lost = {"code": (0.5, 0.4, 0.4, 0.3), "chat": (0.99, 0.95, 0.9, 0.85)}
    sentence = compared(chains(1), chains(2, lost=lost))["sentence"]
    assert "did not change beyond noise" in sentence
    assert "fell on code" in sentence and "rose on chat" in sentence


def test_a_change_everywhere_is_said_so() -> None:
    sentence = compared(chains(1), chains(2, rates=(0.5, 0.4, 0.4, 0.3), steps=200))["sentence"]
    assert "at every position, in every category" in sentence


@pytest.mark.slow  # many runs are simulated; its formula is tested beside it
def test_equal_distributions_rarely_alarm() -> None:
    """The negative control: 200 pairs of records of one distribution. 5% would be 10; 19 or more come once in 200."""
    alarms = 0
    for seed in range(200):
        comparison = compared(chains(2 * seed, steps=12), chains(2 * seed + 1, steps=12))
        alarms += any(row[8] for row in comparison["rows"])
        assert any(row[8] for row in comparison["rows"]) != ("no difference" in comparison["sentence"])
    assert alarms < 19


@pytest.mark.slow  # many runs are simulated; its formula is tested beside it
def test_intervals_of_differences_cover_the_truth() -> None:
    """Of 150 pairs with a known difference, 95% of the intervals should hold it; 12 questions are few."""
    truth = compared(
        chains(1, questions=12, steps=20_000), chains(2, questions=12, rates=(0.8, 0.6, 0.6, 0.5), steps=20_000)
    )
    held = 0
    for seed in range(150):
        comparison = compared(
            chains(2 * seed, questions=12, steps=15),
            chains(2 * seed + 1, questions=12, rates=(0.8, 0.6, 0.6, 0.5), steps=15),
        )
        assert comparison["low"] is not None and comparison["high"] is not None and truth["value"] is not None
        held += comparison["low"] <= truth["value"] <= comparison["high"]
    assert 0.89 <= held / 150 <= 0.995


def timed(seed: int, cost: float) -> Selection:
    """Make twelve questions with chains of like lengths, beside plain steps of 10 ms; a step costs so many."""
    random = np.random.default_rng(seed)
    runs, steps = [], []
    for place in range(12):
        one, alone, ms = 2 * place, 2 * place + 1, 10 * random.uniform(0.5, 2)
        runs += [run(one, f"q{place}"), run(alone, f"q{place}", method="autoregressive")]
        lengths = random.binomial(4, 0.5, 20).tolist()
        steps += [
            step(n, length, 4, of=one, total_ms=ms * cost * random.uniform(0.9, 1.1))
            for n, length in enumerate(lengths, start=1)
        ]
        steps += [step(n, 0, 0, of=alone, total_ms=ms * random.uniform(0.9, 1.1)) for n in range(1, 11)]
    return selection(runs, steps)


def test_a_slower_step_is_named_though_acceptance_is_the_same() -> None:
    """Of a folder that was made on another machine: each has its own steps of one token at a time."""
    before, after = (timed(seed, cost).where(method="draft_model") for seed, cost in ((1, 1.2), (2, 1.8)))
    comparison = compared(before, after)
    assert "no difference in acceptance beyond noise" in comparison["sentence"]
    assert "The speed-up fell from 2." in comparison["sentence"] and "to 1." in comparison["sentence"]
    row = next(row for row in comparison["rows"] if row[0] == "speed")
    assert (
        row[8] is True and row[5] < row[4] < row[6] < 0 and row[3] == pytest.approx(measure("speedup", after)["value"])
    )
    assert not any(row[8] for row in comparison["rows"] if row[0] != "speed")


def test_a_speed_up_within_noise_is_not_named() -> None:
    """The negative control: records of one distribution. 5% of 60 would be 3; 9 or more come once in 200."""
    named = 0
    for seed in range(60):
        before, after = (timed(2 * seed + side, 1.2).where(method="draft_model") for side in (0, 1))
        comparison = compared(before, after)
        (row,) = (row for row in comparison["rows"] if row[0] == "speed")
        assert ("speed-up" in comparison["sentence"]) == row[8]
        named += row[8]
    assert named < 9


def test_a_folder_without_a_baseline_has_no_speed_up_to_compare() -> None:
    alone = timed(1, 1.2).where(runs=range(0, 24, 2))
    bare = selection([run(n, f"q{n}") for n in range(12)], [step(1, n % 3, 3, of=n) for n in range(12)])
    for other in (timed(2, 1.2).where(method="draft_model"), bare):
        assert not any(row[0] == "speed" for row in compared(bare, other)["rows"])
    assert any(row[0] == "speed" for row in compared(alone, timed(2, 1.2).where(method="draft_model"))["rows"])


def test_the_order_of_questions_does_not_matter() -> None:
    one = selection([run(n, f"q{n}") for n in range(8)], [step(1, n % 3, 3, of=n) for n in range(8)])
    other = selection([run(n, f"q{7 - n}") for n in range(8)], [step(1, (7 - n) % 3, 3, of=n) for n in range(8)])
    comparison = compared(one, other)
    assert comparison["value"] == 0.0 and comparison["low"] == comparison["high"] == 0.0
    assert np.all([row[7] in (1.0, None) for row in comparison["rows"]])


def lengths(accepted: Sequence[int]) -> Selection:
    """Make a question of four equal steps for each number."""
    steps = [step(n, count, of=of) for of, count in enumerate(accepted) for n in range(1, 5)]
    return selection([run(of, f"q{of}") for of in range(len(accepted))], steps)


def test_nothing_whose_interval_holds_0_is_beyond_noise() -> None:
    """Nine questions gain and one loses more: swaps find that in one of fifty, but resampled it may be none."""
    comparison = compared(lengths([4] * 10), lengths([6] * 9 + [1]))
    row = comparison["rows"][0]
    assert row[7] < 0.05 and row[5] <= 0 < row[6]
    assert row[8] is False and "no difference beyond noise" in comparison["sentence"]


def test_every_position_is_said_of_all_of_them_alone() -> None:
    """Before, no step came to positions 3 to 5: nothing is known there."""
    runs, sides = [run(of, f"q{of}") for of in range(12)], []
    for gained in (0, 2):
        sides.append(selection(runs, [step(n, gained + n % 2, 5, of=of) for of in range(12) for n in range(1, 9)]))
    assert compared(*sides)["sentence"] == "Acceptance rose from 1.50 to 3.50, at positions 1 and 2."
