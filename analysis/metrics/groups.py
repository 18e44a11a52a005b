"""Acceptance by category, by context length, and by the target's entropy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from decoding.types import JSON

from . import intervals
from .acceptance import guesses_by_run
from .columns import Array
from .result import Condition, MetricResult, UnknownError, result
from .selection import Selection

CONTEXTS = (0, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768)  # tokens: where a bin begins
ENTROPIES = (0.0, 0.1, 0.3, 1.0, 2.0, 3.0)  # nats
_SOME = 5  # steps; a group of fewer is not called the best or the worst
MOST_GROUPS = 100  # the largest ones, where a record has more categories
_COLUMNS = ("questions", "steps", "tokens per step", "low", "high", "acceptance rate")


def by_category(selection: Selection) -> MetricResult:
    """Compute acceptance by the questions' category."""
    codes, texts = selection.runs.codes("category")
    most = dict(Counter(code for code in codes.tolist() if code >= 0).most_common(MOST_GROUPS))
    used = [code for code in dict.fromkeys(codes.tolist()) if code in most]
    groups = np.full(len(texts) + 1, -1)
    groups[used] = np.arange(len(used))
    names = [texts[code] for code in used]
    where: list[list[Condition]] = [[("runs", "category", "=", name)] for name in names]
    rates = _rates_of_runs(selection, groups[codes], len(names))
    return _grouped(selection, "category", names, groups[codes][selection.run_of_step], where, rates)


def by_context(selection: Selection) -> MetricResult:
    """Compute acceptance by the tokens before a step."""
    return _binned(selection, "start", CONTEXTS, "context")


def by_entropy(selection: Selection) -> MetricResult:
    """Compute acceptance by the entropy of the target's distribution at the root."""
    return _binned(selection, "entropy", ENTROPIES, "entropy")


def _binned(selection: Selection, column: str, edges: Sequence[float], head: str) -> MetricResult:
    values = selection.steps.number(column)
    bins = np.where(np.isnan(values), -1, np.searchsorted(edges, np.nan_to_num(values), side="right") - 1)
    names = [*(f"{low:g} to {high:g}" for low, high in pairwise(edges)), f"from {edges[-1]:g}"]
    where: list[list[Condition]] = [
        [("steps", column, ">=", low), ("steps", column, "<", high)] for low, high in pairwise(edges)
    ]
    where.append([("steps", column, ">=", edges[-1])])
    return _grouped(selection, head, names, bins, where)


def _rates_of_runs(selection: Selection, groups: Array, width: int) -> Array:
    """Compute the acceptance rate of groups of whole runs, whose guesses may be counted by run only."""
    try:
        accepted, drafted = guesses_by_run(selection)
    except UnknownError:
        return np.full(width, np.nan)
    some = groups >= 0
    above, below = (np.bincount(groups[some], values[some], width) for values in (accepted, drafted))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(below > 0, above / below, np.nan))


def _grouped(
    selection: Selection,
    head: str,
    names: Sequence[str],
    groups: Array,
    where: Sequence[Sequence[Condition]],
    rates: Array | None = None,
) -> MetricResult:
    """Make a row for each group that has a step; `groups` holds a group for every step, or -1.

    `rates` are the groups' acceptance rates where these are more than what the steps say.
    """
    steps, width, clusters = selection.steps, len(names), selection.clusters
    some = groups >= 0
    cells = selection.cluster_of_step[some] * width + groups[some]
    seen = np.unique(selection.question_of_step[some] * width + groups[some]) % width
    questions = np.bincount(seen, minlength=width)

    def sums(values: Array) -> Array:
        return np.bincount(cells, weights=values[some], minlength=clusters * width).reshape(clusters, width)

    counts = sums(np.ones(len(steps)))
    value, low, high = intervals.ratio(sums(steps.number("written")), counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        counted = ~np.isnan(steps.maybe("drafted"))
        drafted = sums(np.where(counted, steps.maybe("drafted"), 0)).sum(0)
        rate = sums(np.where(counted, steps.number("accepted"), 0)).sum(0) / drafted
        rate[drafted == 0] = np.nan
    rate = rate if rates is None else rates
    shown = [place for place in range(width) if counts[:, place].any()]
    rows: list[list[JSON]] = [
        [
            names[place],
            int(questions[place]),
            int(counts[:, place].sum()),
            *(column[place] for column in (value, low, high, rate)),
        ]
        for place in shown
    ]
    compared = [row for row in rows if row[2] >= _SOME] or rows
    best, worst = (choose(compared, key=lambda row: row[3]) for choose in (max, min))
    sentence = f"Most tokens per step at {head} {best[0]} ({best[3]:.2f}), fewest at {worst[0]} ({worst[3]:.2f})."
    if len(compared) == 1:
        others = sum(row[2] for row in rows) - best[2]
        steps_here = "All steps" if not others else f"All steps but {others}"
        sentence = f"{steps_here} are in one group, {head} {best[0]}: {best[3]:.2f} tokens per step."
    elif f"{best[3]:.2f}" == f"{worst[3]:.2f}":
        sentence = f"All groups write {best[3]:.2f} tokens per step."
    return result(sentence, columns=(head, *_COLUMNS), rows=rows, where=[where[place] for place in shown])
