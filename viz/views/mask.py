"""The attention mask of a step: a row for every token that is fed, a column for everything that it may see.

On the left is the text, its positions joined to wide columns where all rows treat them alike; then, after a gap, the
step's own nodes. Where many tokens of the text were still unread, as in a prefill, their rows are above, joined too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from decoding import tree
from decoding.types import Header, Step

from .. import ranks, token_text
from ..cache_slots import chunks
from ..cells import axis, layout
from ..palette import FATE_COUNT, MEANINGS, Fate
from ..run_state import RunState
from ..sources import window_cell
from ..stream import encode
from ..view import Figure, Patch, View

MOST = 512  # nodes that are drawn
FEW = 8  # unread tokens of the text that get columns of their own
READ = FATE_COUNT + 1  # a cell in which a row sees the text
_PROMPT = Fate.PROMPT + 1  # a cell in which unread tokens see each other, all of them; in part it is like READ
_NAMED = 40  # nodes whose rows all have labels
_BUCKETS = 32  # joined rows of unread tokens, about
_MOST_CHUNKS = 400  # rows of a table
_SCALE = [
    [place / (FATE_COUNT + 2), colour]
    for code, colour in enumerate(["rgba(0,0,0,0)", *(meaning.colour for meaning in MEANINGS), "$line"])
    for place in (code, code + 1)
]
_LEAST = 8  # rows and columns that there is room for, lest a lone cell fill the figure
_LABELS = 22  # labels that an axis holds without crowding


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Neighbouring positions of the text that every row sees all of, or none of."""

    first: int
    stop: int
    depths: int  # rows of a depth below this see it
    width: int = 1  # cells that it takes


def base(run: RunState) -> Figure:
    """Return cells by what the row is."""
    look = {"type": "heatmap", "showscale": False, "zmin": -0.5, "zmax": READ + 0.5, "colorscale": _SCALE}
    look |= {"z": []}
    hidden = {
        "type": "bar",
        "x": [],
        "y": [],
        "base": -0.5,
        "hoverinfo": "skip",
        "marker": {"color": "$panel", "pattern": {"shape": "x", "fgcolor": "$line", "bgcolor": "$panel", "size": 6}},
    }
    x = axis(-0.5, 0.5, side="top", showticklabels=True, tickangle=0)
    y = axis(-0.5, 0.5, down=True, showticklabels=True, showgrid=True, gridcolor="$line", ticklabelstandoff=4)
    margin = {"l": 96, "r": 8, "t": 26, "b": 8}
    key = [{"colour": "$line", "words": "text that the row sees"}]
    if run.header.window is not None:
        key.append({"colour": "$panel", "hatch": "x", "ink": "$line", "words": "out of the sliding window"})
    figure: Figure = {
        "data": [look | {"hoverinfo": "none"}, look | {"hoverinfo": "skip"}, hidden],
        "layout": layout(400, x, y, margin=margin, plot_bgcolor="$panel", barmode="overlay"),
        "table": {"kind": "queries", "most": MOST, "sees": _unread_words(run.header.window)},
        "key": key,
    }
    if ranks.shared(run.header):
        key.extend(ranks.KEY)
        return ranks.extended(VIEW, figure, ranks.strip())
    return figure


def frame(run: RunState, k: int) -> Patch:
    """Return the step's mask, the rows of unread tokens, and what lies after the sliding window."""
    step, header = run.steps[k], run.header
    rows = min(len(step.tokens), MOST)
    if not rows:
        return {}
    left = columns(header, step)
    limits = [column.depths for column in left for _ in range(column.width)]
    limits += [0] if limits else []  # a gap before the nodes
    unread = _unread(header, step, left) if step.pending > FEW else []
    drawn = rows if rows < len(step.tokens) else None
    data: list[dict[str, Any]] = [{"z": encode.closure(limits, READ, _near(header, step), drawn)}, {}, {}]
    if unread:
        z = encode.pack(_unread_cells(unread, left, header.window), "u1")
        data[1] = {"z": z, "y0": -len(unread)}
    if behind := sum(column.width for column in takewhile(lambda column: not column.depths, left)):
        data[2] = {"x": [behind / 2 - 0.5], "width": [behind], "y": [rows]}
    for part in (data[: 1 + bool(unread)]) if rows <= _NAMED else ():
        part |= {"xgap": 1, "ygap": 1}
    strip = ranks.strip_of(step, rows, len(limits) + rows) if step.ranks else None
    beyond: list[tuple[float, str]] = [(strip.middle, strip.label)] if strip else []
    wide = max(_LEAST, strip.end if strip else len(limits) + rows)
    data += [strip.patch] if strip else []
    across = {"range": [-0.5, wide - 0.5]} | _above(run, step, left, rows, beyond)
    down = {"range": [max(_LEAST - len(unread), rows) - 0.5, -len(unread) - 0.5]} | _beside(run, step, rows, unread)
    room = {"margin": {"t": 74}} if "tickangle" in across else {}  # for slanting texts
    unread_rows = {"unread": _unread_rows(header, step)} if step.pending else {}
    return {"data": data, "layout": {"xaxis": across, "yaxis": down} | room} | unread_rows


def _unread_words(window: int | None) -> str:
    """Say what each unread token of the text sees."""
    if window is None:
        return "the text from its beginning up to the token itself"
    return f"at most {window} positions: the token itself and those before it"


def _unread_rows(header: Header, step: Step) -> list[tuple[str, int, int]]:
    """Return the chunks of unread text: name, first and last position; few and wide ones where there are many."""
    parts, root = chunks(header, step), step.start - 1
    if len(parts) > _MOST_CHUNKS:
        size = -(-step.pending // _MOST_CHUNKS)
        parts = [range(first, min(first + size, root)) for first in range(root - step.pending, root, size)]
    names = [f"chunk {number + 1}" for number in range(len(parts))] if len(parts) > 1 else ["unread text"]
    return [(name, part.start, part.stop - 1) for name, part in zip(names, parts, strict=True)]


def _near(header: Header, step: Step) -> int | None:
    """Return the sliding window, where the step's own tree is deeper than that."""
    deepest = max(tree.depths(step.parents)[:MOST])
    return header.window if header.window is not None and deepest >= header.window else None


def columns(header: Header, step: Step) -> list[TextColumn]:
    """Return the text before the root, from left to right."""
    root, window = step.start - 1, header.window
    deepest = max(tree.depths(step.parents)[:MOST], default=0)
    # The root sees places from `begin` on, the deepest row from `sharp` on: in between the rows differ.
    begin = 0 if window is None else min(root, max(0, step.start - window))
    sharp = 0 if window is None else min(root, max(0, step.start + deepest - window))
    unread = root - step.pending
    cuts = {0, root, *range(begin, sharp + 1)}
    cuts |= set(range(unread, root)) if step.pending <= FEW else {part.start for part in _joined(header, step)}
    parts = list(pairwise(sorted(cuts)))
    rows = min(len(step.tokens), MOST)
    wide = 1 if rows <= _NAMED else (rows + len(parts)) // 8  # with gaps between cells it must be one cell
    made = list[TextColumn]()
    for first, stop in parts:
        depths = deepest + 1 if window is None or first >= sharp else max(0, first - step.start + window + 1)
        joined = stop - first > 3 and (first < unread or step.pending <= FEW)
        made.append(TextColumn(first, stop, depths, wide if joined else 1 if first >= unread else stop - first))
    return made


def _joined(header: Header, step: Step) -> list[range]:
    """Return neighbouring unread tokens of one chunk, joined where there are many."""
    size = -(-step.pending // _BUCKETS)
    parts = chunks(header, step)
    if len(parts) > _BUCKETS // 2:
        parts = [range(step.start - 1 - step.pending, step.start - 1)]
    return [range(first, min(first + size, part.stop)) for part in parts for first in part[::size]]


def _unread(header: Header, step: Step, left: Sequence[TextColumn]) -> list[range]:
    """Return the rows of unread tokens: as their columns, so that the diagonal is one."""
    parts = [range(column.first, column.stop) for column in left if column.first >= step.start - 1 - step.pending]
    return parts if len(parts) <= 2 * _BUCKETS else _joined(header, step)


def _unread_cells(rows: Sequence[range], left: Sequence[TextColumn], window: int | None) -> npt.NDArray[np.int64]:
    """Return what joined rows see of joined columns: nothing, a part, or all."""
    wide = [column for column in left for _ in range(column.width)]
    top, bottom = np.array([[row.start] for row in rows]), np.array([[row.stop - 1] for row in rows])
    first, last = np.array([column.first for column in wide]), np.array([column.stop - 1 for column in wide])
    reach = int(bottom.max()) + 1 if window is None else window  # places up to itself that a row sees
    some = (first <= bottom) & (last > top - reach)
    whole = (last <= top) & (first > bottom - reach)
    return np.where(whole, _PROMPT, np.where(some, READ, 0))


def _above(
    run: RunState, step: Step, left: Sequence[TextColumn], rows: int, beyond: Sequence[tuple[float, str]]
) -> dict[str, Any]:
    """Return labels of columns: positions of the text, nodes or groups of them, and what is `beyond` them."""
    labels, at, unread = list[tuple[float, str]](), 0, step.start - 1 - step.pending
    starts = {part.start for part in chunks(run.header, step)} if step.pending > FEW else set()
    for column in left:
        if column.first >= unread and not starts:
            labels.append((at, _token(run, run.ids[column.first])))
        elif column.width > 1 or column.first in starts or not at:
            single = column.stop - column.first == 1 or starts
            name = str(column.first) if single else f"{column.first}-{column.stop - 1}"
            labels.append((at + (column.width - 1) / 2, name))
        at += column.width
    start = at + bool(at)
    if rows <= _LABELS:
        tokens = [(float(start + node), _token(run, token)) for node, token in enumerate(step.tokens[:rows])]
        return _ticks([*labels, *tokens, *beyond], 0) | {"tickangle": -50}
    groups = _groups(run, step, rows)
    stops = [*(node for node, _ in groups[1:]), rows]
    middles = [(start + (node + stop - 1) / 2, name) for (node, name), stop in zip(groups, stops, strict=True)]
    apart = (start + rows) / 9
    last = min((place for place, _ in beyond), default=inf)
    return _ticks([*labels, *(each for each in middles if last - each[0] >= apart), *beyond], apart)


def _beside(run: RunState, step: Step, rows: int, unread: Sequence[range]) -> dict[str, Any]:
    """Return labels of rows: chunks of unread tokens, and nodes or groups of them."""
    if rows <= _NAMED and not unread:
        return {"tickvals": encode.node("id"), "ticktext": encode.node("token") | {"cut": 12}, "showgrid": False}
    starts = [part.start for part in chunks(run.header, step)] if unread else []
    begins = {joined.start: row - len(unread) for row, joined in enumerate(unread)}
    labels: list[tuple[float, str]] = [
        (begins[start], f"chunk {number}") for number, start in enumerate(starts, start=1) if start in begins
    ]
    if rows <= _NAMED:
        names = [(node, _token(run, token)) for node, token in enumerate(step.tokens[:rows])]
    else:
        names = _groups(run, step, rows)
    return _ticks([*labels, *names], (rows + len(unread)) / 28) | ({"showgrid": False} if rows <= _NAMED else {})


def _ticks(labels: Sequence[tuple[float, str]], apart: float) -> dict[str, Any]:
    """Return labels of an axis, without those that are too near to the one before."""
    placed = list[tuple[float, str]]()
    for place, name in labels:
        if not placed or place - placed[-1][0] >= apart:
            placed.append((place, name))
    return {
        "tickvals": [int(place) if place == int(place) else place for place, _ in placed],
        "ticktext": {"strings": [name for _, name in placed]},
    }


def _groups(run: RunState, step: Step, rows: int) -> list[tuple[int, str]]:
    """Return where the window's rows and the guesses begin; in a bushy tree every node by its token."""
    groups, guesses, row = [(0, "root")], 0, -1
    for node in range(1, rows):
        at = window_cell(step.sources[node])[0]
        if at >= 0 and at != row:
            groups.append((node, f"row {at}"))
        elif at < 0 and (step.parents[node] in (0, -1) or step.parents[node] != node - 1):
            guesses += 1
            groups.append((node, "guess 1" if guesses == 1 else str(guesses)))
        row = at
    if guesses <= rows // 3:
        return groups
    return [(node, _token(run, token)) for node, token in enumerate(step.tokens[:rows])]


def _token(run: RunState, token: int) -> str:
    return token_text.shown(run.text(token), 12)


VIEW = View(
    name="mask",
    label="Attention mask",
    kind="plot",
    look_for="Each row is a token that the target reads; it sees the coloured cells. A guess sees only its own branch.",
    base=base,
    frame=frame,
    nodes=("rows", None, None),
    phases=("propose", "propose", "propose"),
    columns=(
        ("Token", "token"),
        ("Position", "place"),
        ("Fate", "fate"),
        ("Sees", "sees"),
        ("Where from", "source"),
        ("Node", "number"),
    ),
)
