"""Lookahead on the screen: its window of Jacobi iterations, time by position, and its pool of n-grams.

In the window a cell is where its node is, `depth` places after the root; rows are levels, the oldest on top, so a
token moves up a row and left a column from step to step. The n-gram of a column lies on a diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from decoding.methods.lookahead import LookaheadParams
from decoding.types import Step

from ..boards import board, ngrams
from ..boards import window as grid
from ..boards.board import GONE, OUTCOMES, SIGNED, Board, step_columns
from ..boards.nodes import NodeIndex, root
from ..cells import (
    CUT,
    DOWN,
    PITCH,
    SIZE,
    WIDE_CUT,
    PlotTrace,
    Sign,
    at,
    axis,
    layout,
    lifted,
    packed,
    squares,
    texts,
    ticks,
)
from ..palette import Fate
from ..run_state import RunState
from ..stream.encode import node, pack
from ..tables import Cell, Table, TableRow, fate_of, text_of, texts_of
from ..view import Figure, Patch, Picture
from ..wording import count, quote
from .base import Screen
from .stages import lookahead as on_stage
from .stages.lookahead import panel_of, params_of

_SHOWN = 4  # of the pool's guesses, beside the window
_LEGIBLE = 26  # columns beyond which cells hold no text


def _inserted(step: Step) -> list[tuple[int, list[int], str]]:
    """Return what was added to the pool: the key, the n-gram after it, and what the pool did with it."""
    return [*panel_of(step).get("pool", {}).get("inserted", [])]


def _guessed(params: LookaheadParams) -> int:
    """Return tokens of an n-gram that are guessed after its key."""
    return params.N - 1 - params.drop_bonus


# The window


def window_base(run: RunState) -> Figure:
    """Return the window without a step."""
    params = params_of(run.header)
    W, N, length = params.W, params.N, _guessed(params)
    columns, levels = _places(N, _steady(params))
    most = max((row + 1) * (W + N - 2 - row) for row in range(N - 1))  # a narrow window shrinks while it fills
    size, text = (SIZE, True) if W + N <= _LEGIBLE else (max(5, min(SIZE, 700 // (W + N))), False)
    past = squares("$explored", size=size, text=text) | {"opacity": _opacity(N, levels)}
    data = grid.parts(past, size, text=text)
    data[grid.PAST] |= {"x": [*columns], "y": [*levels], "nodes": [*range(1, most + 1)]}
    xs: list[float | None] = []
    ys: list[float | None] = []
    for i in range(W):
        xs += [*(i + r for r in range(N)), i + N - 0.45, None]
        ys += [*range(N), N - 0.45, None]
    data[grid.DIAGONALS] |= {"x": xs, "y": ys, "opacity": 0.6}
    ends = len(columns) - W
    data[grid.ANSWERS] |= {"x": [*range(N - 1, N - 1 + W)], "y": [N - 1] * W}
    data[grid.ANSWERS] |= {"nodes": [ends + i + 1 for i in range(W)]}
    data[grid.ROOT] |= {"x": [0], "y": [0], "nodes": [0]}
    data[grid.LEARNED] |= {"x": [i + N - 0.4 for i in range(W)], "y": [N - 0.4] * W}
    first = N + 1  # row of the guesses
    rows_of_guesses = [first + j for j in range(_SHOWN) for _ in range(length)]
    data[grid.CURRENT] |= {"y": rows_of_guesses}
    data[grid.SIGNS] |= {"y": rows_of_guesses}
    data[grid.NOTE] |= {"x": [length + 0.7], "y": [first]}
    lines: dict[float, str] = {level: _line(N, level) for level in range(N - 1)}
    named: dict[float, str] = {N - 1: "answers", N - 0.4: "to pool", first: "guesses"}
    rows = axis(-0.7, first + _SHOWN - 0.3, down=True) | ticks({**lines, **named})
    places = {0.0: "root"} | {x: f"+{x}" for x in range(1, W + N - 1) if text or x % 10 == 0}
    xaxis = axis(-0.7, W + N - 0.1, side="top", tickangle=0) | ticks(places)
    height = round(30 + DOWN * (N + _SHOWN + 1.4))
    return {
        "data": data,
        "layout": layout(height, xaxis, rows, margin=grid.MARGIN, yaxis3=lifted(rows)),
        "least": 84 + PITCH * (W + N) if text else 600,
        "look_for": "With each step the lines move up, and every diagonal becomes an n-gram in the pool.",
        "key": board.key(*OUTCOMES.values()),
    }


def window_frame(run: RunState, k: int) -> Patch:
    """Return the window as step k fed it, and what the target answered."""
    params = params_of(run.header)
    W, N = params.W, params.N
    step, data = run.steps[k], [PlotTrace() for _ in range(grid.PARTS)]
    rows, new = panel_of(step).get("rows", [])[: N - 1], panel_of(step).get("new", [])
    sizes = tuple(map(len, rows))
    steady = sizes == _steady(params)
    fed = tuple(token for row in rows for token in row)
    as_fed = fed == step.tokens[1 : len(fed) + 1]
    data[grid.PAST] = {"text": {**node("token", 1, len(fed) + 1), "cut": CUT} if as_fed else texts(fed)}
    data[grid.ANSWERS] = {"text": texts(new)}
    data[grid.ROOT] = {"text": {**node("token", 0, 1), "cut": CUT}}
    if harvest := _harvest(step, len(new)) if steady else []:
        data[grid.LEARNED] = {"sign": packed(harvest)}
    else:
        data[grid.LEARNED] = data[grid.DIAGONALS] = {"x": [], "y": []}
    if not steady or len(new) != W:
        columns, levels = _places(N, sizes)
        data[grid.PAST] |= at(columns, levels) | {"opacity": _opacity(N, levels)}
        below = range(len(rows), len(rows) + len(new))
        data[grid.ANSWERS] |= at(below, [N - 1] * len(new))
        data[grid.ANSWERS]["nodes"] = packed([_end(sizes, i) for i in range(len(new))])
        data[grid.ROOT] |= {"y": [N - 1 - len(rows)]}
    _draw_guesses(step, _guessed(params), data)
    return {"data": data}


def window_rows(run: RunState, k: int) -> Table:
    """Return the window as a table: cells, the target's answers with the n-grams that they ended, and guesses."""
    step, panel, N = run.steps[k], panel_of(run.steps[k]), params_of(run.header).N
    levels, new = panel.get("rows", [])[: N - 1], panel.get("new", [])
    sizes, place = tuple(map(len, levels)), step.start - 1  # of the root
    table_rows = list[TableRow]()
    if step.tokens:
        table_rows.append(
            TableRow((text_of(run, step.tokens[0]), _line(N, N - 1 - len(levels)), place, "root", None), 0)
        )
    fed = (token for level in levels for token in level)
    for at_node, (token, column, row) in enumerate(zip(fed, *_places(N, sizes), strict=True), start=1):
        table_rows.append(TableRow((text_of(run, token), _line(N, row), place + column, "window cell", None), at_node))
    pooled = _pooled(run, k, sizes, len(new))
    for i, (token, words) in enumerate(zip(new, pooled, strict=True)):
        cells = (text_of(run, token), "answers", place + len(levels) + i, grid.ANSWER, words)
        table_rows.append(TableRow(cells, _end(sizes, i), "answers"))
    for number, chain in enumerate(_shown_guesses(step, _guessed(params_of(run.header)))[0], start=1):
        for depth, at_node in enumerate(chain, start=1):
            token, name = step.tokens[at_node], f"guess {number} shown of the pool"
            table_rows.append(
                TableRow((text_of(run, token), name, place + depth, fate_of(step, at_node), None), at_node)
            )
    return Table((*grid.HEADINGS, "Harvested n-gram"), table_rows)


def _pooled(run: RunState, k: int, sizes: tuple[int, ...], columns: int) -> list[Cell]:
    """Say what was added to the pool from every column of the window."""
    step = run.steps[k]
    if sizes != _steady(params_of(run.header)) or not _harvest(step, columns):
        return [None] * columns
    pooled: list[Cell] = []
    for key, ngram, became in _inserted(step)[:columns]:
        pooled.append({"commit": f"{texts_of(run, [key, *ngram])}: {SIGNED[OUTCOMES[became]]}"})
    return pooled


def _line(N: int, level: int) -> str:
    """Name a line of the window, counted from the top."""
    if level == N - 2:
        return "new line"
    return f"line {level + 1}" if level else "oldest line"


def _end(sizes: tuple[int, ...], column: int) -> int:
    """Return the node at the end of a column; of a single row the root is a column too."""
    return sum(sizes[:-1]) + (len(sizes) > 1) + column


@lru_cache(maxsize=64)
def _places(N: int, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the cells of rows of these lengths: columns, and levels from the bottom up."""
    cells = [(r, i + (r == 0)) for r, size in enumerate(sizes) for i in range(size)]
    top = N - 1 - len(sizes)
    return tuple(r + i for r, i in cells), tuple(top + r for r, _ in cells)


def _steady(params: LookaheadParams) -> tuple[int, ...]:
    """Return the sizes of the rows of a full window."""
    return (params.W - 1, *[params.W] * (params.N - 2))


def _opacity(N: int, levels: Sequence[int]) -> list[float]:
    """Return the opacity of each row: the newest row is the strongest."""
    return [round(0.16 + 0.4 * (level + 1) / (N - 1), 2) for level in levels]


def _harvest(step: Step, columns: int) -> list[Sign]:
    """Return a sign for what the pool did with the n-gram of every column."""
    signs = [OUTCOMES[outcome] for _, _, outcome in _inserted(step)[:columns]]
    return signs if len(signs) == columns else []


def _draw_guesses(step: Step, length: int, data: list[PlotTrace]) -> None:
    """Draw the newest of the pool's guesses, the oldest on top as in the window, and what became of them."""
    shown, more = _shown_guesses(step, length)
    if not shown:
        return
    fed = [place for chain in shown for place in chain]
    xs, columns = packed([*range(1, length + 1)] * len(shown)), step_columns(step, fed, CUT)
    data[grid.CURRENT] = {"x": xs, "text": columns["token"], "nodes": columns["id"]}
    data[grid.CURRENT] |= {"fate": columns["fate"]}
    data[grid.SIGNS] = {"x": xs, "sign": columns["symbol"]}
    if more:
        data[grid.NOTE] = {"text": {"strings": [f"and {more} more in the pool"]}}


def _shown_guesses(step: Step, length: int) -> tuple[list[list[int]], int]:
    """Return the nodes of the guesses that have room, with the best among them, and the number of the others."""
    nodes = NodeIndex(step)
    entries = enumerate(panel_of(step).get("guesses", []))
    chains = [nodes.chain(guess, 0, entry) for entry, guess in entries if len(guess) == length]
    shown = chains[-_SHOWN:]
    best = max(chains, key=nodes.accepted, default=[])
    if best not in shown and nodes.accepted(best):
        shown[0] = best
    fed = all(place >= 0 for chain in shown for place in chain)
    return (shown, len(chains) - len(shown)) if fed else ([], 0)


# The pool


def _size(params: LookaheadParams) -> tuple[int, int, int]:
    """Return tokens shown of an n-gram after its key, n-grams shown of the key, and of those learned."""
    return min(ngrams.WIDEST, params.N - 1), min(ngrams.HELD, max(params.G, 1)), min(ngrams.NEW, params.W)


def pool_base(run: RunState) -> Figure:
    """Return the pool without a step."""
    n, held, new = _size(params_of(run.header))
    right = ngrams.right_of(n)
    figure = ngrams.base("N-gram pool", (*OUTCOMES.values(), GONE), n, right, max(held, new))
    data = figure["data"]
    data[ngrams.KEY] |= {"x": [0], "y": [0], "nodes": [0], "fate": [Fate.ROOT]}
    places = [(right + i, y) for y in range(1, new + 1) for i in range(n + 1)]
    fates = [Fate.PROMPT if x == right else Fate.EXPLORED for x, _ in places]
    data[ngrams.LEARNED] |= {"x": [x for x, _ in places], "y": [y for _, y in places], "fate": pack(fates, "u1")}
    data[ngrams.RIGHT] |= {"x": [right + n + 0.9] * new, "y": [*range(1, new + 1)]}
    return figure


def pool_frame(run: RunState, k: int) -> Patch:
    """Return the n-grams of the step's root, and those that the window gave."""
    params, step, drawn = params_of(run.header), run.steps[k], Board()
    n, held, new = _size(params)
    right = ngrams.right_of(n)
    key, guesses, inserted = root(step), panel_of(step).get("guesses", []), _inserted(step)
    drawn.outcome(_asked(params, step), 0.7, 0)
    signs = _signs_of_held(guesses, [ngram for of, ngram, _ in inserted if of == key], params.G)
    for row, entry in enumerate(ngrams.newest_ngrams(step, guesses, 0, held, newest_first=False), start=1):
        ngrams.draw_ngram(drawn, entry, row, n)
        drawn.label(_since(run, k, entry), 0.4, row)
        if entry.number in signs:
            drawn.mark(signs[entry.number], n + 0.8, row)
    ngrams.count_shown(drawn, 0.5, min(held, len(guesses)), len(guesses))
    ngrams.count_shown(drawn, right - 0.5, min(new, len(inserted)), len(inserted))
    if inserted:
        drawn.outcome(_counted(inserted), right - 0.5, 0)
    data = [*drawn.patch(step), {}, {}, {}, *ngrams.sizes(run, k, _held)]
    shown = inserted[:new]
    tokens = [token for first, ngram, _ in shown for token in (first, *(ngram + [-1] * n)[:n])]
    fewer: PlotTrace = {} if len(shown) == new else {"x": packed([right + i for i in range(n + 1)] * len(shown))}
    data[ngrams.KEY] = {"text": {**node("token", 0, 1), "cut": WIDE_CUT}}
    data[ngrams.LEARNED] = {"text": texts(tokens, WIDE_CUT), **fewer}
    fewer = fewer and {"x": packed([right + n + 0.9] * len(shown))}
    data[ngrams.RIGHT] = {"sign": packed([OUTCOMES[outcome] for _, _, outcome in shown]), **fewer}
    return {"data": data}


def pool_rows(run: RunState, k: int) -> Table:
    """Return the pool as a table: all n-grams of the step's root, and all that the window gave."""
    params, step = params_of(run.header), run.steps[k]
    guesses, inserted = panel_of(step).get("guesses", []), _inserted(step)
    signs = _signs_of_held(guesses, [ngram for of, ngram, _ in inserted if of == root(step)], params.G)
    table_rows = ngrams.key_row(run, k, 0, _asked(params, step))
    for entry in ngrams.newest_ngrams(step, guesses, 0, len(guesses), newest_first=False):
        sign = SIGNED[signs[entry.number]] if entry.number in signs else ""
        table_rows.append(ngrams.held_row(run, k, entry, _since(run, k, entry), sign))
    table_rows += [ngrams.learned_row(run, (of, *ngram), SIGNED[OUTCOMES[became]]) for of, ngram, became in inserted]
    return ngrams.table(table_rows, _held(step), [{"commit": _counted(inserted)}] if inserted else ())


def _asked(params: LookaheadParams, step: Step) -> str:
    """Say how many n-grams the pool held for the step's root."""
    panel = panel_of(step)
    if guesses := panel.get("guesses", []):
        return f"{len(guesses)} of {params.G} kept"
    return "no n-gram for it" if panel.get("phase") == "steady" else "not used until the window is full"


def _since(run: RunState, k: int, entry: ngrams.HeldNgram) -> str:
    """Return where an n-gram of the step's root came from."""
    params, ngram = params_of(run.header), (root(run.steps[k]), *entry.ngram)
    step = ngrams.last_learned(run, k, ngram, lambda step: _learned_ngrams(params, step))
    return "prompt" if step is None else f"step {step}"


def _counted(inserted: Sequence[tuple[int, list[int], str]]) -> str:
    return f"learned {len(inserted)}, {_new(inserted)} new"


def _new(inserted: Sequence[tuple[int, list[int], str]]) -> int:
    """Return how many n-grams the pool did not hold."""
    return sum(outcome != "refreshed" for _, _, outcome in inserted)


def _signs_of_held(held: Sequence[list[int]], inserted: Sequence[list[int]], capacity: int) -> dict[int, Sign]:
    """Return signs for the n-grams that the insertions moved to the front or out, by their numbers."""
    size = len(held[0]) if held else 0
    order: list[tuple[int, ...]] = [tuple(ngram) for ngram in held]
    numbers = {ngram: number for number, ngram in enumerate(order)}
    signs: dict[int, Sign] = {}
    for ngram in inserted:
        guess = tuple(ngram[:size])
        in_order = guess in order
        if in_order:
            order.remove(guess)
        if guess in numbers:
            signs[numbers[guess]] = OUTCOMES["refreshed" if in_order else "added"]
        order.append(guess)
        if len(order) > capacity:
            gone = order.pop(0)
            signs |= {numbers[gone]: GONE} if gone in numbers else {}
    return signs


def _learned_ngrams(params: LookaheadParams, step: Step) -> list[ngrams.Ngram]:
    """Return what was added to the pool, the key in front and as much after it as a guess holds."""
    return [(key, *ngram[: _guessed(params)]) for key, ngram, _ in _inserted(step)]


def _held(step: Step) -> int:
    return panel_of(step).get("pool", {}).get("entries", 0)


# Words


def _origin(run: RunState, step: Step) -> str:
    entries = len(panel_of(step).get("guesses", []))
    key = quote(run, [run.ids[step.start - 1]])
    return f" from the pool's {'n-gram' if entries == 1 else f'{entries} n-grams'} after {key}"


def _learned(run: RunState, step: Step) -> str:
    panel = panel_of(step)
    if "rows" not in panel:
        return ""
    if panel.get("phase") != "steady":
        return f"The window grew to {len(panel['rows']) + 1} rows."
    inserted = _inserted(step)
    return f"Harvested {count(len(inserted), 'n-gram')}, {_new(inserted)} of them new." if inserted else ""


def _no_guess(run: RunState, step: Step) -> str:
    if panel_of(step).get("phase") != "steady":
        return "the window is not full yet" if step.panel else ""
    return f"the pool holds no n-gram after {quote(run, [root(step)])}"


SCREEN = Screen(
    heeds_budget=False,
    sources={"window": "window, {0} below its top line, on the diagonal from +{1}"},
    origin=_origin,
    learned=_learned,
    no_guess=_no_guess,
    pool=Picture(pool_base, pool_frame, pool_rows),
    window=Picture(window_base, window_frame, window_rows),
    stage=on_stage.STAGE,
    depth=lambda header: params_of(header).N - 1,
)
