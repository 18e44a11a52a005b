"""A bar opens what it counts: the conditions of a row choose as many steps or guesses as the row says."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import pytest

from analysis.metrics import METRICS, Condition, Selection, measure

from .tables import Row, guess, root, run, selection, step, tables_of

SIGNS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
}
# Which number of a row counts what its conditions choose.
COUNTS = {
    "survival": "accepted",
    "conditional_acceptance": "judged",
    "ctar": "steps",
    "acceptance_histogram": "steps",
    "histogram_by_draft_length": "steps",
    "by_category": "steps",
    "by_context": "steps",
    "by_entropy": "steps",
    "reliability": "guesses",
    "rank_histogram": "positions",
    "p_against_q": "guesses",
    "alpha": "guesses",
    "confusion": "times",
    "hit_ranks": "judged",
    "by_source": "proposed",
    "experts": "passes",
}


def tables() -> tuple[list[Row], list[Row], list[Row]]:
    """Return chains and trees of two categories; of some guesses the distribution is not known."""
    runs = [run(0, "a", category="code"), run(1, "b"), run(2, "c")]
    steps: list[Row] = []
    nodes: list[Row] = []
    for of in range(3):
        for at in range(12):
            drafted, accepted = (0, 0) if at == 0 else (4, (at * (of + 3)) % 4)
            steps.append(
                step(at, accepted, drafted, of=of, start=60 * at, entropy=at / 8, fed=1 + drafted, experts=1.0 + at)
            )
            nodes.append(root(at, of=of))
            for node in range(1, drafted + 1):
                depth = min(node, 3)  # the last two stand side by side, and neither is accepted where only three were
                right = node <= min(accepted, 3)
                recorded = of != 2 or at % 2
                drawn = {"confidence": node / 5, "p": at / 12, "q": node / 5, "overlap": 0.5} if recorded else {}
                drawn |= {"rank": None if node == 2 else node - 1} if recorded else {}
                place = {"of": of, "at": at, "sibling": int(node == 4), "source": "pool" if at % 2 else "draft"}
                outcome = {"accepted": right, "judged": depth <= accepted + 1, "token": node, "wanted": 7 + at % 2}
                nodes.append(guess(node, depth - 1, depth, **place, **outcome, **drawn))
    return runs, steps, nodes


def chosen(rows: Sequence[Row], conditions: Sequence[Condition], table: str) -> list[Row]:
    """Choose what SQL would: a null is in no comparison."""
    mine = [(column, sign, value) for name, column, sign, value in conditions if name == table]
    return [
        row
        for row in rows
        if all(
            (row.get(column) is not None or sign.startswith("is")) and SIGNS[sign](row.get(column), value)
            for column, sign, value in mine
        )
    ]


def counted(conditions: Sequence[Condition], runs: list[Row], steps: list[Row], nodes: list[Row]) -> tuple[int, int]:
    """Count the steps and nodes of which the conditions hold."""
    numbers = {row["run"] for row in chosen(runs, conditions, "runs")}
    matching = [row for row in chosen(steps, conditions, "steps") if row["run"] in numbers]
    accepted = {(row["run"], row["step"]): row["accepted"] for row in steps}
    after = [row | {"lost": row["depth"] == accepted[row["run"], row["step"]] + 1} for row in nodes]
    return len(matching), len(chosen(after, conditions, "nodes"))


def check(key: str, record: Selection, raw: tuple[list[Row], list[Row], list[Row]]) -> None:
    result: Any = measure(key, record)
    assert result["rows"] and len(result["where"]) == len(result["rows"]), result
    place = result["columns"].index(COUNTS[key])
    for row, conditions in zip(result["rows"], result["where"], strict=True):
        steps, nodes = counted(conditions, *raw)
        assert row[place] == (nodes if any(table == "nodes" for table, *_ in conditions) else steps), (row, conditions)


@pytest.mark.parametrize("key", COUNTS)
def test_a_row_opens_what_it_counts(key: str) -> None:
    raw = tables()
    if key == "conditional_acceptance":  # counts steps, of which a tree has several guesses at one depth
        raw = raw[0], raw[1], [row for row in raw[2] if row.get("sibling") != 1]
    check(key, Selection.of(*tables_of(*raw).values()), raw)


@pytest.mark.parametrize("key", ["conditional_acceptance", "acceptance_histogram"])
def test_it_does_without_nodes(key: str) -> None:
    runs, steps, _ = tables()
    check(key, selection(runs, steps), (runs, steps, []))


def test_no_metric_that_opens_steps_is_left_out() -> None:
    record = Selection.of(*tables_of(*tables()).values())
    assert {key for key in METRICS if measure(key, record)["where"]} == set(COUNTS)
