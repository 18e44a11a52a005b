"""Rows that belong together stay together, whatever is left out."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.metrics import METRICS, Selection, measure
from decoding.errors import TraceError

from .tables import guess, root, run, selection, step, tables_of

RUNS = [run(7, "b"), run(3, "a", category="code"), run(5, "b", method="autoregressive")]
STEPS = [step(1, 1, 2, of=3), step(0, 0, 0, of=7), step(0, 0, 0, of=3), step(0, 0, 0, of=5), step(1, 0, 1, of=7)]
NODES = [root(1, of=7), guess(1, 0, 1, of=7), root(1, of=3), guess(1, 0, 1, of=3, accepted=True)]


def test_tables_in_any_order_are_joined() -> None:
    whole = selection(RUNS, STEPS, NODES)
    assert whole.run_of_step.tolist() == [1, 0, 1, 2, 0]
    assert whole.step_of_node.tolist() == [4, 4, 0, 0]
    assert whole.questions == ["b", "a"] and whole.question_of_step.tolist() == [1, 0, 1, 0, 0]
    assert whole.methods == [("draft_model", "default"), ("autoregressive", "default")]


def test_runs_bring_their_steps_and_nodes() -> None:
    part = selection(RUNS, STEPS, NODES).where(category="code")
    assert part.runs.maybe("run").tolist() == [3]
    assert part.steps.maybe("step").tolist() == [1, 0]
    assert part.step_of_node.tolist() == [0, 0] and part.questions == ["a"]


def test_a_mask_of_steps_brings_their_runs() -> None:
    whole = selection(RUNS, STEPS, NODES)
    part = whole.masked(whole.steps.maybe("accepted") > 0)
    assert part.runs.maybe("run").tolist() == [3] and len(part.nodes) == 2
    assert part.where(method="draft_model").masked(np.zeros(1, bool)).questions == []


def test_the_baseline_is_of_the_same_questions() -> None:
    whole = selection(RUNS, STEPS, NODES)
    assert whole.where(runs=[7]).baseline.runs.maybe("run").tolist() == [5]
    assert whole.where(runs=[3]).baseline.runs.maybe("run").tolist() == [5]  # none has its question: any


@pytest.mark.parametrize(
    ("runs", "steps", "nodes"),
    [
        ([run(1)], [step(0, 0, of=2)], []),
        ([run(1), run(1)], [step(0, 0, of=1)], []),
        ([run(1)], [step(0, 0, of=1), step(0, 0, of=1)], []),
        ([run(1)], [step(-1, 0, of=1)], []),
        ([run(1)], [step(0, 0, of=1)], [root(3, of=1)]),
        ([run(1)], [step(2**62, 0, of=1)], []),
    ],
)
def test_rows_that_belong_nowhere_are_refused(runs: list, steps: list, nodes: list) -> None:
    with pytest.raises(TraceError, match="damaged"):
        Selection.of(*tables_of(runs, steps, nodes).values())


@pytest.mark.parametrize("key", METRICS)
def test_every_metric_answers_on_records_that_know_nothing(key: str) -> None:
    """An import of eight numbers must show what it can, and a reason for the rest."""
    records = [
        selection([], [step(0, 0)]),
        selection(RUNS, STEPS, NODES),
        selection(RUNS, STEPS, NODES).where(runs=[]),
        Selection.of(*tables_of([], []).values()),
    ]
    for record in records:
        result = measure(key, record)
        assert (result["reason"] is None) == bool(result["sentence"]), result
        assert all(len(row) == len(result["columns"]) for row in result["rows"])
        assert result["where"] == [] or len(result["where"]) == len(result["rows"])


def test_every_metric_says_how_to_read_it() -> None:
    assert all(metric.key == key for key, metric in METRICS.items())
    for metric in METRICS.values():
        assert metric.formula and metric.look_for.endswith(".") and metric.title and metric.group
        assert metric.chart in ("number", "bars", "lines", "heat", "table")
