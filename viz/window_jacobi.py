"""Jacobi's block, iterations by places of the text, and the traces that it shares with Lookahead's window."""

from __future__ import annotations

from collections.abc import Mapping

from decoding.types import Header, Role, Step

from . import panel
from .cells import PITCH, SIZE, Trace, at, axis, cells, labels, layout, lifted, line, packed, signs, texts, ticks
from .encode import fates, pack
from .narration import count
from .palette import Fate
from .story import Story, node_fates
from .view import Figure, Patch

_HISTORY, _CELLS = 16, 112  # iterations shown, and cells of earlier ones
_COLUMNS = 36  # places of the text shown
FRONT, DIAGONALS, PAST, SETTLED, CURRENT, SIGNS, ANSWERS, ROOT, LEARNED, NOTE = range(10)  # the traces
TRACES = 10
MARGIN = {"l": 58, "r": 8, "t": 22, "b": 4, "pad": 2}


def traces(past: Trace, size: int, *, text: bool) -> list[Trace]:
    """The traces of both figures, without their points."""
    return [
        line("$accepted", 2),
        line("$explored", 1),
        past,
        signs(5, lifted=True),
        cells(None, size=size, text=text),
        signs(lifted=True),
        cells("$explored", size=size, text=text, opacity=0.15) | {"hoverinfo": "none"},
        cells("$root", size=size, text=text, opacity=0.2),
        signs(9),
        labels("middle right"),
    ]


def told_as_table(rows: Mapping[int, str], past: str | None) -> Trace:
    """How the player tells a window as a table: the names of its rows, and the cells of every trace.

    Cells have the name that is given here or, with None, that of their fate.
    """
    kinds = [[ROOT, "root"], [PAST, past], [CURRENT, None], [ANSWERS, "the target's answer"]]
    return {"kind": "cells", "cells": kinds, "rows": {str(y): name for y, name in rows.items()}}


def _block(header: Header) -> int:
    return panel.setting(header, "n", 1, 128, 8)


def _past(header: Header) -> int:
    return max(4, min(_HISTORY - 1, _CELLS // _block(header)))


def base(header: Header) -> Figure:
    """The figure without a step."""
    n, past = _block(header), _past(header)
    columns = min(_COLUMNS, n + 12)
    data = traces(cells(None, opacity=0.25), SIZE, text=True)
    data[CURRENT] |= {"y": [0] * n, "customdata": [*range(1, n + 1)]}
    data[SIGNS] |= {"y": [0] * n}
    data[ANSWERS] |= {"y": [1] * (n + 1), "customdata": [*range(n + 1)]}
    data[ROOT] |= {"y": [0], "customdata": [0]}
    rows = {-age: f"{age} ago" for age in (*range(5, past + 1, 5), 1)} | {0: "this pass", 1: "answers"}
    yaxis = axis(-past - 0.7, 1.7, down=True) | ticks(rows)
    xaxis = axis(0, columns, side="top", showticklabels=True, dtick=2 if columns < 30 else 5, tickformat="d")
    figure = layout(round(30 + PITCH * (past + 2.4)), xaxis, yaxis, margin=MARGIN, yaxis3=lifted(yaxis))
    told = {-age: count(age, "pass", "passes") + " ago" for age in range(1, past + 1)} | {0: "this pass", 1: "answers"}
    look_for = "What is left of the green line is settled: every pass moves it on by at least one place."
    more = {"least": 66 + PITCH * columns, "look_for": look_for, "table": told_as_table(told, None)}
    more["draws"] = [Fate.EXPLORED]  # as which the answers are drawn
    return {"data": data, "layout": figure, **more}


def frame(story: Story, k: int) -> Patch:
    """The last iterations, up to step k."""
    n, past = _block(story.header), _past(story.header)
    step, data = story.steps[k], [Trace() for _ in range(TRACES)]
    columns = min(_COLUMNS, n + 12)
    end = step.start + min(n, columns - 8) + 0.7
    earlier = story.steps[max(0, k - past) : k][::-1]
    cells = [cell for age, before in enumerate(earlier, start=1) for cell in _iteration(before, -age, n, end - columns)]
    data[PAST] = at([x for _, x, _, _, _ in cells], [y for _, _, y, _, _ in cells])
    data[PAST] |= {"text": texts([token for token, *_ in cells]), "ids": packed([life for *_, life in cells])}
    data[PAST]["marker"] = {"color": pack([fate for *_, fate, _ in cells], "u1")}
    right = [(x, y) for _, x, y, fate, _ in cells if fate is Fate.ACCEPTED]
    data[SETTLED] = at([x for x, _ in right], [y for _, y in right])
    block = _iteration(step, 0, n, end - columns)
    codes = [fate for *_, fate, _ in block]
    data[CURRENT] = {"x": packed([x for _, x, *_ in block]), "text": texts([token for token, *_ in block])}
    data[CURRENT]["marker"] = {"color": fates(codes)}
    data[SIGNS] = {"x": packed([x for _, x, *_ in block])}
    data[SIGNS]["marker"] = {"symbol": {"symbols": pack(codes, "u1")}}
    answers = panel.tokens(step.panel.get("answers"), n + 1)
    data[ANSWERS] = {"x": packed([*range(step.start, step.start + len(answers))]), "text": texts(answers)}
    data[ROOT] = {"x": [step.start - 1], "text": texts(step.tokens[:1])}
    data[FRONT], data[DIAGONALS] = _front([*earlier[::-1], step], step)
    return {"data": data, "layout": {"xaxis": {"range": [end - columns, end]}}}


def _iteration(step: Step, y: int, n: int, left: float) -> list[tuple[int, int, int, Fate, int]]:
    """Token, place, row, fate and a lasting number of every guess of an iteration that is in sight."""
    judged, row = node_fates(step), (step.index % 256) * 128
    guesses = [node for node in range(1, min(len(step.tokens), n + 1)) if step.roles[node] is not Role.ROOT]
    placed = ((node, step.start + node - 1) for node in guesses)
    return [(step.tokens[node], x, y, judged[node], row + node - 1) for node, x in placed if x > left]


def _front(steps: list[Step], now: Step) -> tuple[Trace, Trace]:
    """Where the settled text ended before every iteration, and how far this one moves it."""
    xs: list[float] = []
    ys: list[float] = []
    for row, step in enumerate(steps):
        xs += [step.start - 0.5] * 2
        ys += [row - len(steps) + 0.5, row - len(steps) + 1.5]
    after = now.start + len(now.emitted) - 0.5
    moved = at([now.start - 0.5, after, after], [0.5, 0.5, 1.5])
    return at(xs, ys), moved | {"line": {"color": "$accepted", "width": 2}}
