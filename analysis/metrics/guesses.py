"""Metrics of single guesses: what the target chose instead, which of a tree were accepted, and their sources."""

from __future__ import annotations

import numpy as np

from decoding.parts.medusa_tree import TreeShape, expected_length, grow
from decoding.types import JSON

from . import intervals, source_kinds
from .columns import NO_GUESS, Array
from .result import LOST, Condition, MetricResult, UnknownError, percent, result
from .selection import Selection

JUDGED: tuple[Condition, ...] = (("nodes", "role", "=", "verify"), ("nodes", "judged", "=", True))
_PAIRS = 50  # of the most frequent
_SOURCES = 100  # that brought most
_DEEPEST = 64
_FEWEST = 20  # positions at a depth from which a tree's accuracies are taken
_LARGEST = 512  # guesses of a tree that is suggested
_UNRANKED = "rank not recorded"
_REASONS = (  # why a step ended
    "not in the vocabulary",
    "drawn otherwise",
    "cut by the tree",
    "ranked lower",
    _UNRANKED,
    "draft ended",
)
_SIZES = (1, 2, 4, 8, 16, 32, 63)


def confusion(selection: Selection) -> MetricResult:
    """Count what the target chose instead of the drafter's first guess, where all guesses were wrong."""
    nodes = selection.nodes
    token, wanted = nodes.number("token"), nodes.number("wanted")
    compared = ~np.isnan(token) & ~np.isnan(wanted)
    rows = selection.lost[compared[selection.lost]]
    if not len(rows):
        raise UnknownError("no guess of this selection was rejected")
    pairs = np.stack([token[rows], wanted[rows]], axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    starts = np.flatnonzero(np.append(True, (np.diff(pairs[order], axis=0) != 0).any(1)))
    counts = np.diff(np.append(starts, len(order)))
    best = np.argsort(-counts, kind="stable")[:_PAIRS]
    first = nodes.rows[rows[order[starts[best]]]]  # in the whole table
    drafted, answer = (nodes.columns.table[name].take(first).to_pylist() for name in ("text", "wanted_text"))
    ids = pairs[order[starts[best]]].astype(np.int64).tolist()
    table: list[list[JSON]] = [
        [drafted[place], answer[place], int(counts[group]), counts[group] / len(rows), *ids[place]]
        for place, group in enumerate(best.tolist())
    ]
    where = [
        [*one_a_position(selection), LOST, ("nodes", "token", "=", row[4]), ("nodes", "wanted", "=", row[5])]
        for row in table
    ]
    top = table[0]
    sentence = (
        f"At {len(rows):,} positions no guess was right; the most frequent pair makes up {percent(top[3])} of them."
    )
    columns = ("drafter said", "target said", "times", "share", "token", "wanted")
    return result(sentence, columns=columns, rows=table, where=where)


def lost_because(selection: Selection) -> MetricResult:
    """Count the reasons why steps ended where they did, by the drafter's rank of what the target chose instead."""
    nodes, lost = selection.nodes, selection.lost
    step, parent = selection.step_of_node, nodes.maybe("parent").astype(np.int64)
    drawn = (~np.isnan(nodes.maybe("q")) & (selection.temperature_of_node > 0))[lost]
    rank, draftable = nodes.maybe("rank")[lost], nodes.maybe("draftable")[lost]
    ranked = ~np.isnan(rank) | ~np.isnan(nodes.maybe("confidence")[lost])
    judged = np.flatnonzero(selection.judged)
    _, place, siblings = np.unique(
        np.stack([step[judged], parent[judged]]), axis=1, return_inverse=True, return_counts=True
    )
    widest = np.zeros(len(selection.runs), np.int64)  # guesses for one position of a run, at most
    np.maximum.at(widest, selection.run_of_step[step[judged]], siblings[place.ravel()])
    within = rank < widest[selection.run_of_step[step[lost]]]
    reasons = np.select([draftable == 0, drawn, within, ranked], [0, 1, 2, 3], 4)
    counts = np.bincount(reasons, minlength=len(_REASONS)).tolist()
    recorded = np.zeros(len(selection.steps), bool)
    recorded[step[judged]] = True
    uncut = selection.steps.number("written") > selection.steps.number("accepted")
    counts[5] = max(0, int((recorded & uncut).sum()) - len(np.unique(step[lost])))
    if not sum(counts):
        raise UnknownError(NO_GUESS)
    rows: list[list[JSON]] = [
        [reason, count, count / sum(counts)] for reason, count in zip(_REASONS, counts, strict=True) if count
    ]
    with_rank = [row for row in rows if row[0] != _UNRANKED]
    unranked = next((row for row in rows if row[0] == _UNRANKED), None)
    counted = f"{sum(counts):,} steps with guesses that the end of the text did not cut"
    if with_rank:
        most = max(with_rank, key=lambda row: row[1])
        which = "most frequent known end" if unranked else "most frequent end"
        sentence = f"The {which} of a step is {most[0]!r}: {percent(most[2])} of {counted}."
        if unranked:
            sentence += f" In {percent(unranked[2])}, the rank of the target's choice was not recorded."
    else:
        sentence = f"The rank of the target's choice was not recorded in any of {counted}."
    return result(sentence, columns=("because", "steps", "share"), rows=rows)


def hit_ranks(selection: Selection) -> MetricResult:
    """Count the accepted guesses for one position, by depth and rank."""
    judged, hits, low, high = _by_sibling(selection)
    rows: list[list[JSON]] = [
        [
            *(depth, rank, int(judged[depth, rank]), int(hits[depth, rank])),
            *(hits[depth, rank] / judged[depth, rank], low[depth, rank], high[depth, rank]),
        ]
        for depth, rank in np.argwhere(judged).tolist()
    ]
    where = [
        [("nodes", "judged", "=", True), ("nodes", "depth", "=", row[0]), ("nodes", "sibling", "=", row[1])]
        for row in rows
    ]
    others = int(hits[:, 1:].sum())
    sentence = "Every accepted guess was the first one for its position."
    if others:
        sentence = f"{percent(others / hits.sum())} of the accepted guesses were not the first ones for their position."
    columns = ("depth", "sibling", "judged", "accepted", "share", "low", "high")
    return result(sentence, columns=columns, rows=rows, where=where)


def suggested_tree(selection: Selection) -> MetricResult:
    """Grow trees from the accuracies of ranks at each depth, as Medusa's are grown from its heads' accuracies."""
    accuracies = _accuracies(selection)
    drafted = selection.steps.maybe("drafted")[selection.guessing]
    now = min(_LARGEST, round(float(np.nanmean(drafted)))) if not np.isnan(drafted).all() else 0
    trees: dict[int, TreeShape] = {}
    for size in sorted({*_SIZES, max(1, now)}):
        tree = grow(accuracies, size)
        trees[len(tree.paths)] = tree
    rows: list[list[JSON]] = []
    for size, tree in trees.items():
        if size:
            tokens = expected_length(tree, accuracies)
            rows.append([size, tokens, (tokens - 1) / size, tree.text])
    if not rows:
        raise UnknownError("no guess of this selection was accepted")
    chosen = min(rows, key=lambda row: (abs(row[0] - now), row[0]))
    length = 1 + selection.steps.number("accepted")[selection.guessing].mean()  # an expected step is never cut either
    sentence = f"The best tree of {chosen[0]} guesses is expected to write {chosen[1]:.2f} tokens per step"
    sentence += f", if depths err independently; steps with guesses now have {now} and, as vLLM counts, {length:.2f}."
    columns = ("guesses", "tokens per step", "gain per guess", "choices")
    return result(sentence, value=chosen[1], unit="tokens", columns=columns, rows=rows)


def by_source(selection: Selection) -> MetricResult:
    """Count proposed, judged and accepted guesses by the kind of their source."""
    nodes = selection.nodes
    codes, texts = nodes.codes("source")
    guesses = selection.guesses & (codes >= 0)
    if not guesses.any():
        raise UnknownError(NO_GUESS)
    judged, accepted = nodes.number("judged") > 0, nodes.number("accepted") > 0
    proposed, seen, hits = (
        np.bincount(codes[mask], minlength=len(texts)) for mask in (guesses, guesses & judged, guesses & accepted)
    )
    low, high = intervals.wilson(hits, seen)
    used = sorted(np.flatnonzero(proposed).tolist(), key=lambda code: (-hits[code], -proposed[code]))[:_SOURCES]
    rows: list[list[JSON]] = [
        [
            *(source_kinds.source_label(texts[code]), int(proposed[code]), int(seen[code]), int(hits[code])),
            *(hits[code] / seen[code] if seen[code] else None, low[code], high[code]),
        ]
        for code in used
    ]
    where = [[("nodes", "source", "=", texts[code]), ("nodes", "role", "=", "verify")] for code in used]
    best, source = rows[0], source_kinds.source_in_sentence(texts[used[0]])
    sentence = f"{best[3]:,} of {int(hits.sum()):,} accepted guesses came from {source}, which proposed {best[1]:,}."
    columns = ("source", "proposed", "judged", "accepted", "share", "low", "high")
    return result(sentence, columns=columns, rows=rows, where=where)


def one_a_position(selection: Selection) -> list[Condition]:
    """Return the conditions of one judged guess for every position."""
    siblings = not np.isnan(selection.nodes.maybe("sibling")).all()
    return [*JUDGED, ("nodes", "sibling", "=", 0)] if siblings else list(JUDGED)


def branches(selection: Selection) -> bool:
    """Return whether some position had several guesses."""
    if not len(selection.nodes):
        return False
    sibling = selection.nodes.maybe("sibling")[selection.guesses]
    return bool((sibling > 0).any())


def _by_sibling(selection: Selection) -> tuple[Array, Array, Array, Array]:
    """Count judged and accepted guesses by depth and rank among siblings, with intervals of the shares."""
    nodes, judged = selection.nodes, selection.judged
    sibling = nodes.number("sibling")
    rows = np.flatnonzero(judged & ~np.isnan(sibling))
    if not len(rows):
        raise UnknownError(nodes.columns.unknown["sibling"])
    return _grid(nodes.number("depth")[rows], sibling[rows], nodes.number("accepted")[rows])


def _accuracies(selection: Selection) -> list[list[float]]:
    """Return how often rank r at each depth is what the target chose.

    By the drafter's own ranks where these are known; else, and where guesses are drawn and a guess of any rank may be
    accepted, by what became of the siblings.
    """
    nodes, places = selection.nodes, selection.places
    places = places[~(selection.temperature_of_node[places] > 0)]
    rank = nodes.maybe("rank")[places]
    listed = ~np.isnan(rank)
    if listed.any():
        ranked = listed | ~np.isnan(nodes.maybe("confidence")[places])
        depth = np.minimum(nodes.number("depth")[places[ranked]].astype(np.int64), _DEEPEST)
        _, hits, _, _ = _grid(depth, np.nan_to_num(rank[ranked]), listed[ranked])
        cases = np.broadcast_to(np.bincount(depth, minlength=len(hits))[:, None], hits.shape)
    else:
        cases, hits, _, _ = _by_sibling(selection)
    accuracies: list[list[float]] = []
    for row, seen in zip(hits[1:].tolist(), cases[1:].tolist(), strict=True):
        if seen[0] < _FEWEST:
            break
        accuracies.append([hit / count if count else 0.0 for hit, count in zip(row, seen, strict=True)])
    if not accuracies:
        raise UnknownError(f"fewer than {_FEWEST} positions were judged: too few to grow a tree from")
    return accuracies


def _grid(depth: Array, rank: Array, hit: Array) -> tuple[Array, Array, Array, Array]:
    """Return cases and hits by depth and rank, with intervals of the shares."""
    depth, rank = (np.minimum(values.astype(np.int64), _DEEPEST) for values in (depth, rank))
    shape = int(depth.max()) + 1, int(rank.max()) + 1
    cells = depth * shape[1] + rank
    cases = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    hits = np.bincount(cells, weights=hit, minlength=shape[0] * shape[1]).reshape(shape)
    return cases, hits, *intervals.wilson(hits, cases)
