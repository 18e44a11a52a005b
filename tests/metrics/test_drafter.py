"""Calibration, ranks, p against q and alpha, on guesses of which every number is written here."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.metrics import Selection, measure

from .tables import guess, root, run, selection, step

# Step 1, a chain of four: two accepted, the third rejected, the fourth never judged.
# Step 2, a tree: two guesses for the first place, the second of them right; nothing below it.
NODES = [
    root(1),
    guess(1, 0, 1, accepted=True, confidence=0.9, p=0.8, q=0.9, rank=0, overlap=0.8),
    guess(2, 1, 2, accepted=True, confidence=0.95, p=0.9, q=0.95, rank=0, overlap=0.7),
    guess(3, 2, 3, confidence=0.55, p=0.1, q=0.55, rank=2, overlap=0.3),
    guess(4, 3, 4, judged=False, confidence=0.99, p=0.0, q=0.99),
    root(2),
    guess(1, 0, 1, at=2, confidence=0.5, p=0.2, rank=1, overlap=0.4),
    guess(2, 0, 1, at=2, sibling=1, accepted=True, confidence=0.3, p=0.7, rank=1, overlap=0.4),
    {**guess(3, 0, 1, at=2, judged=False), "role": "explore", "source": "window"},
]
STEPS = [step(0, 0, 0), step(1, 2, 4), step(2, 1, 2)]
ALL = selection(steps=STEPS, nodes=NODES)


def test_reliability() -> None:
    """Bins: 0.3 (1 of 1), 0.5 (0 of 2, mean 0.525), 0.9 (2 of 2, mean 0.925). ECE = (0.7 + 1.05 + 0.15) / 5."""
    reliability = measure("reliability", ALL)
    assert [row[:5] for row in reliability["rows"]] == [
        [0.3, 0.4, 1, pytest.approx(0.3), 1.0],
        [0.5, 0.6, 2, pytest.approx(0.525), 0.0],
        [0.9, 1.0, 2, pytest.approx(0.925), 1.0],
    ]
    assert reliability["value"] == pytest.approx((0.7 + 1.05 + 0.15) / 5)
    assert "too confident, by 0.04" in reliability["sentence"]  # 3.2 expected, 3 came: 0.2 / 5


def test_a_calibrated_drafter_has_no_error() -> None:
    nodes = [root(), *(guess(i + 1, 0, 1, sibling=i, confidence=0.25, accepted=i == 0) for i in range(4))]
    reliability = measure("reliability", selection(steps=[step(1, 1, 4)], nodes=nodes))
    assert reliability["value"] == pytest.approx(0.0) and "well calibrated" in reliability["sentence"]


def test_ranks_are_counted_once_a_place() -> None:
    """Four places: ranks 0, 0, 2 in the chain and 1 in the tree, whose two guesses stand for one place."""
    ranks = measure("rank_histogram", ALL)
    assert ranks["rows"] == [[0, 2, 0.5, 0.5], [1, 1, 0.25, 0.75], [2, 1, 0.25, 1.0]]
    assert ranks["value"] == 0.5


def test_a_choice_below_the_list_is_no_unknown_one() -> None:
    """With a confidence the drafter's list was there and lacked the token; without one nobody knows."""
    nodes = [root(), guess(1, 0, 1, confidence=0.5), root(2), guess(1, 0, 1, at=2)]
    nodes += [root(3), guess(1, 0, 1, at=3, confidence=0.5, rank=0)]
    ranks = measure("rank_histogram", selection(steps=[step(n, 0, 1) for n in (1, 2, 3)], nodes=nodes))
    assert ranks["rows"] == [[0, 1, 0.5, 0.5], [None, 1, 0.5, 1.0]]


def test_p_against_q() -> None:
    """Five judged guesses; the mean of q is 0.64, that of p 0.54."""
    bins = measure("p_against_q", ALL)
    assert [row[:3] for row in bins["rows"]] == [
        [0.3, 0.7, 1],
        [0.5, 0.1, 1],
        [0.5, 0.2, 1],
        [0.9, 0.8, 1],
        [0.9, 0.9, 1],
    ]
    assert bins["value"] == pytest.approx(0.64 - 0.54)
    assert bins["where"][-1][2:] == [
        *(("nodes", "confidence", ">=", 0.9), ("nodes", "confidence", "<=", 1.0)),
        *(("nodes", "p", ">=", 0.9), ("nodes", "p", "<=", 1.0)),
    ]


def test_alpha_beside_what_was_accepted() -> None:
    """Places: 0.8, 0.7, 0.3 drawn, 0.4 not. Two of the three that were drawn came true."""
    alpha = measure("alpha", ALL)
    assert alpha["value"] == pytest.approx((0.8 + 0.7 + 0.3 + 0.4) / 4)
    assert [row[:5] for row in alpha["rows"]] == [
        [1, 2, pytest.approx(0.6), 1, 1.0],
        [2, 1, pytest.approx(0.7), 1, 1.0],
        [3, 1, pytest.approx(0.3), 1, 0.0],
    ]
    assert "0.67 of the 3 drawn ones were accepted, which is within chance" in alpha["sentence"]


def drawn(accepted: float, overlap: float) -> Selection:
    random = np.random.default_rng(1)
    hits = random.random(1000) < accepted
    nodes = [
        row
        for place, hit in enumerate(hits.tolist())
        for row in (root(place), guess(1, 0, 1, at=place, accepted=hit, q=0.5, overlap=overlap))
    ]
    return selection(steps=[step(place, int(hit), 1) for place, hit in enumerate(hits.tolist())], nodes=nodes)


def test_a_wrong_q_is_found() -> None:
    """The fault: q is recorded before the filters, or rounded otherwise than it was sampled."""
    assert "not drawn from the recorded distribution" in measure("alpha", drawn(0.5, 0.7))["sentence"]
    assert "within chance" in measure("alpha", drawn(0.7, 0.7))["sentence"]


def test_greedy_guesses_are_not_drawn() -> None:
    """A greedy record holds q as well; its guesses are first choices, and come true more or less often than alpha."""
    greedy = selection([run(sampling='{"temperature": 0.0}')], STEPS, NODES)
    assert [row[3] for row in measure("alpha", greedy)["rows"]] == [0, 0, 0]
    assert "none of these guesses was drawn" in measure("alpha", greedy)["sentence"]
    for text in ('{"temperature": 0.7}', "{}", "[", "[" * 5000, "7"):
        assert measure("alpha", selection([run(sampling=text)], STEPS, NODES)) == measure("alpha", ALL)


@pytest.mark.parametrize("key", ["reliability", "rank_histogram", "p_against_q", "alpha"])
def test_a_drafter_without_a_distribution_has_a_reason(key: str) -> None:
    nodes = [root(), guess(1, 0, 1)]
    metric = measure(key, selection(steps=[step(1, 0, 1)], nodes=nodes))
    assert metric["reason"] and metric["reason"].startswith("this record lacks")
