"""The drafter's own distribution beside the target's: calibration, ranks, p against q, alpha."""

from __future__ import annotations

import math

import numpy as np

from decoding.types import JSON

from . import intervals
from .columns import Array
from .guesses import JUDGED, one_a_position
from .result import Condition, MetricResult, UnknownError, percent, result
from .selection import Selection

_BINS = 10
_RANKS = 64  # listed apart
_ALARM = 4.0  # standard deviations between alpha and what was accepted: by chance, once in 16,000 records
_SAME = 0.02  # probabilities this near in the mean are called equal


def reliability(selection: Selection) -> MetricResult:
    """Compute the accepted share of the guesses with each confidence; the value is the ECE."""
    judged, confidence = _judged_values(selection, "confidence")
    accepted = selection.nodes.number("accepted")[judged]
    bins = _bin(confidence)
    counts, hits, sums = (
        np.bincount(bins, weights=values, minlength=_BINS)
        for values in (np.ones(len(bins)), accepted, np.clip(confidence, 0, 1))
    )
    low, high = intervals.wilson(hits, counts)
    used = np.flatnonzero(counts)
    rows: list[list[JSON]] = [
        [
            *(place / _BINS, (place + 1) / _BINS, int(counts[place]), sums[place] / counts[place]),
            *(hits[place] / counts[place], low[place], high[place]),
        ]
        for place in used.tolist()
    ]
    error = float(np.abs(sums - hits).sum() / counts.sum())
    gap = float((sums.sum() - hits.sum()) / counts.sum())
    sentence = f"The expected calibration error is {error:.3f}: overall the drafter is "
    sentence += "well calibrated." if abs(gap) < _SAME else f"too {'confident' if gap > 0 else 'cautious'}, "
    if abs(gap) >= _SAME:
        sentence += f"by {abs(gap):.2f}."
    columns = ("from", "to", "guesses", "confidence", "accepted", "low", "high")
    return result(sentence, value=error, columns=columns, rows=rows, where=_within("confidence", used))


def rank_histogram(selection: Selection) -> MetricResult:
    """Count the drafter's ranks of what the target chose, at every position where the target decided."""
    places = selection.places
    rank = selection.nodes.number("rank")[places]
    ranked = ~np.isnan(rank) | ~np.isnan(selection.nodes.maybe("confidence")[places])
    if not ranked.any():
        raise UnknownError("this record lacks the rank of the target's choice")
    rank = rank[ranked]
    listed = rank[~np.isnan(rank)].astype(np.int64)
    counts, total = np.bincount(np.minimum(listed, _RANKS), minlength=1), len(rank)
    reached = counts.cumsum() / total
    rows: list[list[JSON]] = [
        [place, count, count / total, reached[place]] for place, count in enumerate(counts.tolist())
    ]
    one = one_a_position(selection)
    where = [[*one, ("nodes", "rank", "=", row[0])] for row in rows]
    if total > len(listed):
        rows.append([None, total - len(listed), 1 - len(listed) / total, 1.0])
        where.append([*one, ("nodes", "rank", "is", None), ("nodes", "confidence", "is not", None)])
    sentence = f"The target's choice is the drafter's first in {percent(reached[0])} of {total:,} positions"
    if len(counts) > 1:
        sentence += f", and among its first {len(counts)} in {percent(reached[-1])}"
    columns = ("rank", "positions", "share", "share up to it")
    return result(f"{sentence}.", value=reached[0], unit="share", columns=columns, rows=rows, where=where)


def p_against_q(selection: Selection) -> MetricResult:
    """Count the judged guesses by both models' probabilities, as a density."""
    judged, q = _judged_values(selection, "confidence")
    p = selection.nodes.number("p")[judged]
    both = ~np.isnan(p)
    if not both.any():
        raise UnknownError("no guess of this selection has a probability under both models")
    p, q = np.clip(p[both], 0, 1), np.clip(q[both], 0, 1)
    cells = _bin(q) * _BINS + _bin(p)
    counts = np.bincount(cells, minlength=_BINS**2)
    hits = np.bincount(cells, weights=selection.nodes.number("accepted")[judged][both], minlength=_BINS**2)
    used = np.flatnonzero(counts)
    rows: list[list[JSON]] = [
        [cell // _BINS / _BINS, cell % _BINS / _BINS, int(counts[cell]), hits[cell] / counts[cell]]
        for cell in used.tolist()
    ]
    where = [
        [*likely, *sure[len(JUDGED) :]]
        for likely, sure in zip(_within("confidence", used // _BINS), _within("p", used % _BINS), strict=True)
    ]
    gap = float(q.mean() - p.mean())
    sentence = (
        f"On average the drafter gives its guesses a probability of {q.mean():.2f}, and the target {p.mean():.2f}."
    )
    columns = ("drafter from", "target from", "guesses", "accepted")
    return result(sentence, value=gap, unit="q - p, on average", columns=columns, rows=rows, where=where)


def alpha(selection: Selection) -> MetricResult:
    """Compute the chance that a sampled guess is accepted, sum of min(p, q), and the fate of the sampled ones."""
    nodes, places = selection.nodes, selection.places
    overlap = nodes.number("overlap")[places]
    places, overlap = places[~np.isnan(overlap)], overlap[~np.isnan(overlap)]
    if not len(places):
        raise UnknownError("no judged guess of this selection has both distributions")
    depth = np.minimum(nodes.number("depth")[places].astype(np.int64), _RANKS)
    sampled = ~np.isnan(nodes.maybe("q")[places]) & (selection.temperature_of_node[places] != 0)
    hit = nodes.number("accepted")[places]
    steps = selection.step_of_node[places]
    value, low, high = (
        float(number)
        for number in intervals.ratio(
            selection.by_question(overlap, steps), selection.by_question(np.ones(len(places)), steps)
        )
    )
    counts, sums = np.bincount(depth), np.bincount(depth, weights=overlap)
    drawn, hits = np.bincount(depth[sampled], minlength=len(counts)), np.bincount(depth[sampled], hit[sampled])
    hits = np.pad(hits, (0, len(counts) - len(hits)))
    bounds = intervals.wilson(hits, drawn)
    rows: list[list[JSON]] = [
        [
            *(place, int(counts[place]), sums[place] / counts[place], int(drawn[place])),
            *(hits[place] / drawn[place] if drawn[place] else None, *(bound[place] for bound in bounds)),
        ]
        for place in np.flatnonzero(counts).tolist()
    ]
    one = [*one_a_position(selection), ("nodes", "overlap", "is not", None)]
    where = [[*one, ("nodes", "depth", "=", row[0])] for row in rows]
    sentence = f"A guess drawn from the drafter's distribution is accepted with probability {value:.2f}"
    sentence += _beside(overlap[sampled], hit[sampled])
    columns = ("position", "guesses", "alpha", "sampled", "accepted", "low", "high")
    return result(sentence, value=value, interval=(low, high), columns=columns, rows=rows, where=where)


def _beside(overlap: Array, hit: Array) -> str:
    """Compute the fate of sampled guesses; given those before, each is accepted with the chance of its own overlap."""
    if not len(hit):
        return "; none of these guesses was drawn: they are the drafter's first choices."
    spread = math.sqrt(float((overlap * (1 - overlap)).sum()))
    off = abs(float(hit.sum() - overlap.sum()))
    sentence = f"; {hit.mean():.2f} of the {len(hit):,} drawn ones were accepted"
    if off > max(_ALARM * spread, 0.5):
        return f"{sentence}, more or fewer than by chance: they were not drawn from the recorded distribution."
    return f"{sentence}, which is within chance."


def _judged_values(selection: Selection, column: str) -> tuple[Array, Array]:
    """Select the judged guesses with a value in a column, and return the values."""
    values = selection.nodes.number(column)
    rows = np.flatnonzero(selection.judged & ~np.isnan(values))
    if not len(rows):
        raise UnknownError(selection.nodes.columns.unknown[column])
    return rows, values[rows]


def _bin(shares: Array) -> Array:
    return np.clip((shares * _BINS).astype(np.int64), 0, _BINS - 1)


def _within(column: str, bins: Array) -> list[list[Condition]]:
    """Return the conditions of each bin; the last one includes 1."""
    return [
        [
            *JUDGED,
            ("nodes", column, ">=", place / _BINS),
            ("nodes", column, "<=" if place == _BINS - 1 else "<", (place + 1) / _BINS),
        ]
        for place in bins.tolist()
    ]
