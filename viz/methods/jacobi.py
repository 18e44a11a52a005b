"""Jacobi decoding on the screen: its block, iterations by positions of the text.

A row is an iteration, the newest at the bottom; what lies left of the line is settled.
"""

from __future__ import annotations

from decoding.types import Header, Step

from ..boards.window import (
    ANSWER,
    ANSWERS,
    CURRENT,
    DIAGONALS,
    FRONT,
    HEADINGS,
    MARGIN,
    PARTS,
    PAST,
    ROOT,
    SETTLED,
    SIGNS,
    parts,
)
from ..cells import DOWN, PITCH, SIZE, PlotTrace, at, axis, layout, lifted, packed, squares, texts, ticks
from ..fates import node_fates
from ..palette import Fate
from ..run_state import RunState
from ..stream.encode import fates, pack
from ..tables import Table, TableRow, fate_label, fate_of, text_of
from ..view import Figure, Patch, Picture
from ..wording import count
from .base import Screen
from .stages import jacobi as on_stage
from .stages.jacobi import answers_of, block_size, guesses_of

_HISTORY, _CELLS = 16, 112  # iterations shown, and cells of earlier ones
_COLUMNS = 36  # positions of the text shown
_LOOK_FOR = "Everything left of the green line is settled. Each pass moves the line by at least one token."


def _past(header: Header) -> int:
    """Return earlier iterations that are shown."""
    return max(4, min(_HISTORY - 1, _CELLS // block_size(header)))


def base(run: RunState) -> Figure:
    """Return the figure without a step."""
    n, past = block_size(run.header), _past(run.header)
    columns = min(_COLUMNS, n + 12)
    data = parts(squares(opacity=0.25), SIZE, text=True)
    data[CURRENT] |= {"y": [0] * n, "nodes": [*range(1, n + 1)]}
    data[SIGNS] |= {"y": [0] * n}
    data[ANSWERS] |= {"y": [1] * (n + 1), "nodes": [*range(n + 1)]}
    data[ROOT] |= {"y": [0], "nodes": [0]}
    rows = {-age: f"{age} ago" for age in (*range(5, past + 1, 5), 1)} | {0: "this pass", 1: "answers"}
    yaxis = axis(-past - 0.7, 1.7, down=True) | ticks(rows)
    xaxis = axis(0, columns, side="top", showticklabels=True, dtick=2 if columns < 30 else 5, tickformat="d")
    figure = layout(round(30 + DOWN * (past + 2.4)), xaxis, yaxis, margin=MARGIN, yaxis3=lifted(yaxis))
    draws = [Fate.EXPLORED]  # as which the answers are drawn
    return {"data": data, "layout": figure, "least": 84 + PITCH * columns, "look_for": _LOOK_FOR, "draws": draws}


def frame(run: RunState, k: int) -> Patch:
    """Return the last iterations, up to step k."""
    n, past = block_size(run.header), _past(run.header)
    step, data = run.steps[k], [PlotTrace() for _ in range(PARTS)]
    columns = min(_COLUMNS, n + 12)
    end = step.start + min(n, columns - 8) + 0.7
    earlier = run.steps[max(0, k - past) : k][::-1]
    cells = [cell for age, before in enumerate(earlier, start=1) for cell in _iteration(before, -age, n, end - columns)]
    data[PAST] = at([x for _, x, _, _ in cells], [y for _, _, y, _ in cells])
    data[PAST] |= {"text": texts([token for token, *_ in cells]), "fate": pack([fate for *_, fate in cells], "u1")}
    right = [(x, y) for _, x, y, fate in cells if fate is Fate.ACCEPTED]
    data[SETTLED] = at([x for x, _ in right], [y for _, y in right])
    block = _iteration(step, 0, n, end - columns)
    codes = [fate for *_, fate in block]
    data[CURRENT] = {"x": packed([x for _, x, *_ in block]), "text": texts([token for token, *_ in block])}
    data[CURRENT]["fate"] = fates(codes)
    data[SIGNS] = {"x": packed([x for _, x, *_ in block]), "sign": {"symbols": pack(codes, "u1")}}
    answers = answers_of(step)[: n + 1]
    data[ANSWERS] = {"x": packed([*range(step.start, step.start + len(answers))]), "text": texts(answers)}
    data[ROOT] = {"x": [step.start - 1], "text": texts(step.tokens[:1])}
    data[FRONT], data[DIAGONALS] = _front([*earlier[::-1], step], step)
    return {"data": data, "layout": {"xaxis": {"range": [end - columns, end]}}}


def rows(run: RunState, k: int) -> Table:
    """Return the last iterations as a table, the oldest first, and what the target answered."""
    n, past = block_size(run.header), _past(run.header)
    step, cells = run.steps[k], list[TableRow]()
    for before in run.steps[max(0, k - past) : k]:
        age = count(k - before.index, "pass", "passes") + " ago"
        iteration = _iteration(before, 0, n, 0)
        cells += [TableRow((text_of(run, each), age, place, fate_label(code))) for each, place, _, code in iteration]
    if step.tokens:
        cells.append(TableRow((text_of(run, step.tokens[0]), "this pass", step.start - 1, "root"), 0))
    for node in guesses_of(step, n):
        given, place = text_of(run, step.tokens[node]), step.start + node - 1
        cells.append(TableRow((given, "this pass", place, fate_of(step, node)), node))
    for node, answer in enumerate(answers_of(step)[: n + 1]):
        cells.append(TableRow((text_of(run, answer), "answers", step.start + node, ANSWER), node, "answers"))
    return Table(HEADINGS, cells)


def _iteration(step: Step, y: int, n: int, left: float) -> list[tuple[int, int, int, Fate]]:
    """Return token, position, row and fate of every guess of an iteration that is shown."""
    judged = node_fates(step)
    placed = ((node, step.start + node - 1) for node in guesses_of(step, n))
    return [(step.tokens[node], x, y, judged[node]) for node, x in placed if x > left]


def _front(steps: list[Step], now: Step) -> tuple[PlotTrace, PlotTrace]:
    """Return where the settled text ended before every iteration, and how far this one moves it."""
    xs: list[float] = []
    ys: list[float] = []
    for row, step in enumerate(steps):
        xs += [step.start - 0.5] * 2
        ys += [row - len(steps) + 0.5, row - len(steps) + 1.5]
    after = now.start + len(now.emitted) - 0.5
    moved = at([now.start - 0.5, after, after], [0.5, 0.5, 1.5])
    return at(xs, ys), moved | {"line": {"color": "$accepted", "width": 2}}


SCREEN = Screen(
    chain=True,
    heeds_budget=False,
    sources={"jacobi": "Jacobi block, {0} iterations old"},
    origin=lambda run, step: " in its block",
    window=Picture(base, frame, rows),
    stage=on_stage.STAGE,
    depth=block_size,
)
