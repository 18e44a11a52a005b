"""The experts that a step's pass reads: what a tree costs in a mixture of experts."""

from __future__ import annotations

import numpy as np

from decoding.types import JSON

from ..store.schema import DENSE
from . import intervals
from .columns import Array
from .result import Condition, MetricResult, UnknownError, result
from .selection import Selection

_OURS = "specscope"
_MOST = 100  # numbers of rows, the most frequent ones


def experts(selection: Selection) -> MetricResult:
    """Count the different experts of a layer that a later step's pass reads, by the pass's rows."""
    steps = selection.steps
    counts = steps.maybe("experts")
    if np.isnan(counts).all() and len(steps) and selection.runs.is_text("engine", _OURS).all():
        raise UnknownError(DENSE)  # we count them wherever there are any
    later = (steps.number("step") > 0) & ~np.isnan(steps.number("experts"))
    if not later.any():
        raise UnknownError("no step but the first of this selection counts its experts")
    value, low, high = (
        float(number)
        for number in intervals.ratio(
            selection.by_question(counts[later], later), selection.by_question(np.ones(later.sum()), later)
        )
    )
    sentence = f"A step reads {value:.2f}{_of_a_layer(selection)} experts{_beside_one_row(selection, value)}."
    rows, where = _by_rows(selection, later)
    columns = ("rows", "experts", "low", "high", "passes")
    return result(sentence, value=value, interval=(low, high), unit="experts", columns=columns, rows=rows, where=where)


def _by_rows(selection: Selection, later: Array) -> tuple[list[list[JSON]], list[list[Condition]]]:
    """Make a row for every number of rows that passes had."""
    steps = selection.steps
    fed = steps.maybe("fed")
    counted = np.flatnonzero(later & ~np.isnan(fed))
    sizes, group, seen = np.unique(fed[counted], return_inverse=True, return_counts=True)
    most = np.sort(np.argsort(-seen, kind="stable")[:_MOST])
    place = np.full(len(sizes), -1)
    place[most] = np.arange(len(most))
    kept = place[group] >= 0
    counted, group = counted[kept], place[group[kept]]
    cells = selection.cluster_of_step[counted] * len(most) + group

    def sums(values: Array) -> Array:
        totals = np.bincount(cells, weights=values, minlength=selection.clusters * len(most))
        return totals.reshape(selection.clusters, len(most))

    value, low, high = intervals.ratio(sums(steps.maybe("experts")[counted]), sums(np.ones(len(counted))))
    rows: list[list[JSON]] = [
        [int(sizes[size]), value[row], low[row], high[row], int(seen[size])] for row, size in enumerate(most.tolist())
    ]
    where: list[list[Condition]] = [
        [("steps", "step", ">", 0), ("steps", "fed", "=", row[0]), ("steps", "experts", "is not", None)] for row in rows
    ]
    return rows, where


def _of_a_layer(selection: Selection) -> str:
    """Return the number of experts of a layer, where all runs have as many."""
    experts = selection.runs.maybe("experts")
    return f" of a layer's {experts[0]:.0f}" if len(experts) and (experts == experts[0]).all() else ""


def _beside_one_row(selection: Selection, value: float) -> str:
    """Count the experts that a step of one token at a time reads, where the folder has such steps."""
    try:
        steps = selection.baseline.steps
    except UnknownError:
        return ""
    alone = steps.maybe("experts")[steps.number("step") > 0]
    alone = alone[~np.isnan(alone)]
    if not len(alone) or not alone.mean():
        return ""
    return f", {value / alone.mean():.2f} times as many as one token at a time ({alone.mean():.2f})"
