"""Draws a pool of n-grams: those with the step's key, those learned in the step, and the pool's size.

On the left are the n-grams that the pool held for the step's key, the newest on top; on the right are those learned in
the step; below is the number of n-grams in the pool.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import NamedTuple

from decoding.types import Step

from ..cells import DOWN, WIDE, PlotTrace, Sign, axis, layout, lifted, line, named_signs, note, packed, points
from ..palette import Fate
from ..run_state import RunState
from ..tables import Cell, Table, TableRow, fates_of, outcome_of, texts_of
from ..view import Figure
from .board import Board, key, shown_of
from .nodes import NodeIndex

HELD, NEW = 9, 6  # n-grams shown of the key's, and of those learned
WIDEST = 8  # tokens shown of an n-gram
GAP, _APART = 5, 8  # columns from the last token on the left to the first one on the right: so many, and after the key
KEY, LEARNED, RIGHT, SIZES, NOW = 2, 3, 9, 10, 11  # parts of the figure
HELD_FOR_KEY = "held for the key"
_SAMPLES = 16  # points of the line of sizes
_COUNTED = 4.2  # columns that the words above what was learned need

Ngram = tuple[int, ...]


class HeldNgram(NamedTuple):
    """An n-gram that the pool held when the step began."""

    number: int
    ngram: list[int]
    nodes: list[int]
    accepted: int


def right_of(n: int, apart: int = _APART) -> int:
    """Return the column of the first learned token, after n-grams of `n` tokens and the words above them."""
    return max(n + GAP, apart)


def base(label: str, signs: Sequence[Sign], n: int, right: int, rows: int) -> Figure:
    """Return the figure without a step, for `rows` n-grams of `n` tokens after their key; what was learned
    begins in the column `right`.
    """
    layers = Board.layers(wide=True)
    data = [*layers, points("lines"), points("lines"), named_signs(8), line("$muted"), points("markers+text")]
    for trace in data[SIZES:]:
        trace |= {"xaxis": "x2", "yaxis": "y2"}
    del data[SIZES]["x"]  # it is given by its first place and the distance of its places
    data[SIZES] |= {"fill": "tozeroy", "fillcolor": "$faint"}
    data[NOW] |= {"textposition": "middle right", "texttemplate": " %{y:,}", "marker": {"size": 6, "color": "$text"}}
    wide, height = right + max(n + 1.6, _COUNTED), round(DOWN * (rows + 1.8)) + 84
    share = 56 / height
    axes = {"xaxis2": axis(0, 1, range=None, autorange=True, anchor="y2", domain=[0.02, 0.9])}
    axes["yaxis2"] = axis(0, 1, range=None, autorange=True, anchor="x2", domain=[0, share], rangemode="tozero")
    yaxis = axis(-0.8, rows + 1.2, down=True, domain=[share, 1])
    notes = [note("n-grams in the pool", -2.0, rows + 0.8, "left"), note("after", -0.6, 0, "right")]
    figure = layout(height, axis(-2.1, wide), yaxis, annotations=notes, yaxis3=lifted(yaxis), **axes)
    least = round(WIDE * (wide + 2.1)) + 16
    return {"data": data, "layout": figure, "least": least, "label": label, "key": key(*signs)}


def count_shown(board: Board, x: float, shown: int, number: int) -> None:
    """Say below the rows from column `x` on that there are more of them."""
    if words := shown_of(shown, number):
        board.outcome(words, x, shown + 0.9)


def newest_ngrams(
    step: Step, ngrams: Sequence[list[int]], above: int, most: int, *, newest_first: bool
) -> list[HeldNgram]:
    """Return the newest `most` of the n-grams fed below a node, and in any case the one with most accepted tokens.

    `newest_first` says in which order they are given.
    """
    nodes = NodeIndex(step)
    fed = [nodes.chain(ngram, above, i) for i, ngram in enumerate(ngrams)]
    entries = [HeldNgram(i, *pair, nodes.accepted(pair[1])) for i, pair in enumerate(zip(ngrams, fed, strict=True))]
    entries = entries if newest_first else entries[::-1]
    best = max(entries, key=lambda entry: entry.accepted, default=None)
    chosen = entries[:most]
    if best is not None and best not in chosen and best.accepted:
        chosen[-1] = best
    return chosen


def draw_ngram(board: Board, entry: HeldNgram, row: int, n: int) -> None:
    """Draw an n-gram with the fate of every token that was fed."""
    for x, (token, place) in enumerate(zip(entry.ngram[:n], entry.nodes, strict=False), start=1):
        if place > 0:
            board.guess(place, x, row)
        else:
            board.context(token, x, row, Fate.PROPOSED)
    if entry.accepted:
        board.outcome(f"{entry.accepted} accepted", n + 1.1, row)


def table(rows: Sequence[TableRow], entries: int, say: Sequence[Cell] = ()) -> Table:
    """Return a pool as a table, with the number of n-grams that it holds after the step."""
    headings = ("Tokens", "Which", "Since", "Fates", "Outcome")
    return Table(headings, rows, (*say, {"commit": f"N-grams in the pool: {entries}."}))


def key_row(run: RunState, k: int, node: int, outcome: str) -> list[TableRow]:
    """Return the row of the token before the n-grams on the left; none if no nodes are recorded."""
    step = run.steps[k]
    cells = (texts_of(run, step.tokens[node : node + 1]), HELD_FOR_KEY, None, fates_of(step, [node]), outcome)
    return [TableRow(cells, node)] if step.tokens else []


def held_row(run: RunState, k: int, entry: HeldNgram, since: str, learned: str = "") -> TableRow:
    """Return an n-gram that the pool held for the key, and what the step made of it."""
    step, fed = run.steps[k], [node for node in entry.nodes if node > 0]
    cells = (
        texts_of(run, entry.ngram),
        HELD_FOR_KEY,
        since,
        fates_of(step, entry.nodes),
        outcome_of(entry.accepted, learned),
    )
    return TableRow(cells, fed[0] if fed else -1)


def learned_row(run: RunState, ngram: Iterable[int], learned: str) -> TableRow:
    """Return an n-gram that was added to the pool, with its key in front, and what the pool did with it."""
    return TableRow((texts_of(run, ngram), "learned", None, None, learned), since="commit")


def sizes(run: RunState, k: int, held: Callable[[Step], int]) -> list[PlotTrace]:
    """Return how many n-grams the pool held up to step k: at regular steps, and now."""
    sizes: dict[int, int] = run.memo.setdefault("n-grams held", {})
    every = k // _SAMPLES + 1
    for step in run.steps[k % every : k + 1 : every]:
        if step.index not in sizes:
            sizes[step.index] = held(step)
    counts = [sizes[step.index] for step in run.steps[k % every : k + 1 : every]]
    return [{"x0": k % every, "dx": every, "y": packed(counts)}, {"x": [k], "y": counts[-1:]}]


def last_learned(run: RunState, k: int, ngram: Ngram, learned: Callable[[Step], Iterable[Ngram]]) -> int | None:
    """Return the last step before k in which the pool took in an n-gram; `learned` gives those of a step."""
    history: _History = run.memo.setdefault("n-grams learned", _History())
    steps = history.steps_of(ngram, run.steps, learned)
    before = bisect_left(steps, k)
    return steps[before - 1] if before else None


class _History:
    """The steps in which every n-gram was learned, as far as the steps were read."""

    def __init__(self) -> None:
        self._read, self._lock = 0, Lock()  # several visitors may ask for steps of one run
        self._steps: dict[Ngram, list[int]] = {}

    def steps_of(
        self, ngram: Ngram, steps: Sequence[Step], learned: Callable[[Step], Iterable[Ngram]]
    ) -> Sequence[int]:
        with self._lock:
            for step in steps[self._read :]:
                for new in learned(step):
                    self._steps.setdefault(new, []).append(step.index)
                self._read += 1
            return self._steps.get(ngram, ())
