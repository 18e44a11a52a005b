"""What must hold of any record, on records drawn at random."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.metrics import METRICS, compared, measure

from .tables import Row, guess, root, run, selection, step

Drawn = list[list[tuple[int, int]]]  # of each run, of each step: guesses, and how many were accepted
CHAINS = st.lists(
    st.lists(st.integers(0, 5).flatmap(lambda k: st.tuples(st.just(k), st.integers(0, k))), min_size=1, max_size=6),
    min_size=1,
    max_size=6,
)


def record(drawn: Drawn, *, nodes: bool = False) -> tuple[list[Row], list[Row], list[Row]]:
    """Return runs of three categories and two questions each, their chains, and with `nodes` every guess."""
    runs = [run(place, f"q{place // 2}", category="abc"[place % 3]) for place in range(len(drawn))]
    steps, guesses = [], []
    for place, outcomes in enumerate(drawn):
        for number, (drafted, accepted) in enumerate(outcomes):
            steps.append(step(number, accepted, drafted, of=place, start=100 * number, total_ms=1.0 + accepted))
            guesses.append(root(number, of=place))
            for depth in range(1, drafted + 1):
                come_true = {"accepted": depth <= accepted, "judged": depth <= accepted + 1}
                facts = {"confidence": depth / 7, "p": 0.5, "q": 0.5, "overlap": 0.5, "token": depth, "wanted": 9}
                guesses.append(guess(depth, depth - 1, depth, of=place, at=number, **come_true, **facts))
    return runs, steps, guesses if nodes else []


@settings(max_examples=40, deadline=None)
@given(CHAINS)
def test_survival_is_the_product_of_the_conditional_rates_of_equal_drafts(drawn: Drawn) -> None:
    full = [[(5, accepted) for _, accepted in outcomes] for outcomes in drawn]
    whole = selection(*record(full))
    product = 1.0
    for row, below in zip(
        measure("survival", whole)["rows"], measure("conditional_acceptance", whole)["rows"], strict=False
    ):
        product *= below[3]
        assert row[3] == pytest.approx(product) and row[4] <= row[3] <= row[5]


@settings(max_examples=40, deadline=None)
@given(CHAINS)
def test_nodes_and_counts_say_the_same_of_chains(drawn: Drawn) -> None:
    one, other = (measure("conditional_acceptance", selection(*record(drawn, nodes=nodes))) for nodes in (True, False))
    assert (one["rows"], one["reason"] is None) == (other["rows"], other["reason"] is None)
    hits = measure("hit_ranks", selection(*record(drawn, nodes=True)))
    assert [[row[0], row[3], row[2]] for row in hits["rows"]] == [row[:3] for row in one["rows"]]


@settings(max_examples=30, deadline=None)
@given(CHAINS)
def test_parts_add_up_to_the_whole(drawn: Drawn) -> None:
    whole = selection(*record(drawn, nodes=True))
    for key in ("by_category", "by_context"):
        assert sum(row[2] for row in measure(key, whole)["rows"]) == len(whole.steps)
    counts = measure("acceptance_histogram", whole)
    assert counts["reason"] or sum(row[1] for row in counts["rows"]) == int(whole.guessing.sum())
    parts = [whole.where(category=name) for name in "abc"]
    assert sum(len(part.nodes) for part in parts) == len(whole.nodes)


@settings(max_examples=20, deadline=None)
@given(CHAINS)
def test_every_result_is_json_and_every_interval_holds_its_value(drawn: Drawn) -> None:
    whole = selection(*record(drawn, nodes=True))
    for key in METRICS:
        result = measure(key, whole)
        json.dumps(result, allow_nan=False)
        if result["low"] is not None and result["high"] is not None and result["value"] is not None:
            slack = 1e-6 * max(1.0, abs(result["value"]))  # the tables hold numbers of four bytes
            assert result["low"] - slack <= result["value"] <= result["high"] + slack
    assert "beyond noise" in compared(whole, whole)["sentence"] or "too few" in compared(whole, whole)["sentence"]


@settings(max_examples=20, deadline=None)
@given(CHAINS)
def test_a_mask_of_everything_changes_nothing(drawn: Drawn) -> None:
    whole = selection(*record(drawn, nodes=True))
    same = whole.masked(whole.steps.maybe("accepted") >= 0)
    for key in METRICS:
        assert measure(key, same) == measure(key, whole)
