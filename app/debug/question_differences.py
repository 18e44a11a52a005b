"""Two selections beside each other, one question at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.metrics import MetricResult, Selection
from analysis.metrics.result import result, unknown

_LISTED = 200


def by_question(first: Selection, second: Selection) -> MetricResult:
    """Return the mean acceptance length of every question that both have, those that lost most at the top."""
    places = {name: place for place, name in enumerate(second.questions)}
    common = [name for name in first.questions if name in places]
    if not common:
        return unknown("the two have no question in common")
    means = [dict(zip(side.questions, _means(side).tolist(), strict=True)) for side in (first, second)]
    rows = [[name, means[0][name], means[1][name], means[1][name] - means[0][name]] for name in common]
    rows.sort(key=lambda row: row[3])
    lost, won = sum(row[3] < 0 for row in rows), sum(row[3] > 0 for row in rows)
    words = f"B writes fewer tokens per step in {lost} of {len(rows)} questions, and more in {won}."
    where = [[("runs", "question", "=", row[0])] for row in rows]
    columns = ("question", "A", "B", "difference")
    return result(words, columns=columns, rows=rows[:_LISTED], where=where[:_LISTED])


def _means(selection: Selection) -> np.ndarray[Any, Any]:
    written = selection.by_question(selection.steps.number("written"))
    return written / selection.by_question(np.ones(len(selection.steps)))
