"""Draws which ranks read which nodes of a step's tree: a strip beside a mask, bands of a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from decoding.types import Header, Step

from .cells import LETTERS, PlotTrace
from .stream import encode
from .view import Figure, View

_READ, _CHOSE = 1, 2  # what a rank did at a node; 0: nothing
_MOST, _NAMED = 64, 8  # ranks that are drawn; that a sentence names one by one
COLUMN = ("Ranks that read it", "readers")  # of tables whose rows are nodes
KEY = (
    {"colour": "$muted", "words": "the rank read this row, and its choice counts"},
    {"colour": "$line", "words": "the rank read it too"},
)


def shared(header: Header) -> bool:
    """Return True if several processes read the trees of a run."""
    return header.ranks > 1


def words(readers: Iterable[int]) -> str:
    """Return the ranks that read a node."""
    return ", ".join(map(str, readers))


def extended(view: View, figure: Figure, *parts: PlotTrace) -> Figure:
    """Return a view's figure with more parts, which show no nodes, and with the ranks in its table."""
    more = {"nodes": (*view.nodes, *[None] * len(parts)), "phases": (*view.phases, *["propose"] * len(parts))}
    return figure | more | {"data": [*figure["data"], *parts], "columns": (*view.columns, COLUMN)}


def strip() -> PlotTrace:
    """Return a column for each rank, a row for each node."""
    steps = zip(("rgba(0,0,0,0)", "$line", "$muted"), range(3), strict=True)
    scale = [[(code + end) / 3, colour] for colour, code in steps for end in (0, 1)]
    return {
        "type": "heatmap",
        "showscale": False,
        "zmin": -0.5,
        "zmax": 2.5,
        "colorscale": scale,
        "z": [],
        "hoverinfo": "skip",
    }


class Strip(NamedTuple):
    """The strip of a step: what changes, where its middle is, and where it ends."""

    patch: dict[str, Any]
    middle: float
    label: str
    end: float


def strip_of(step: Step, rows: int, wide: int) -> Strip:
    """Return the strip of a step's first rows, beside a mask that is `wide` cells wide."""
    count, each = min(_MOST, len(step.ranks[0])), max(1, wide // 24)  # everybody reads the root
    z = [[_CHOSE if by[0] == rank else _READ if rank in by else 0 for rank in range(count)] for by in step.ranks[:rows]]
    begin = wide + max(1, wide // 40)
    end = begin + each * count
    patch = {"z": encode.pack(np.array(z), "u1"), "x0": begin + (each - 1) / 2, "dx": each}
    return Strip(patch, (begin + end - 1) / 2, f"ranks 0-{count - 1}", end)


def bands() -> PlotTrace:
    """Return the rows of a tree that belong to one rank each, as areas behind it."""
    look = {"type": "bar", "orientation": "h", "x": [], "y": [], "hoverinfo": "skip", "base": -0.4}
    return look | {"marker": {"color": "$faint", "line": {"width": 0}}}


def names() -> PlotTrace:
    """Return the ranks' names in the corners of their bands."""
    look = {"type": "scatter", "mode": "text", "x": [], "y": [], "hoverinfo": "skip", "cliponaxis": False}
    return look | {"textposition": "bottom left", "textfont": {"size": LETTERS, "color": "$muted"}}


def bands_of(step: Step, rows: Sequence[int | None], end: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the bands of a step up to `end`, from left to right, and their names; `rows` holds every node's row."""
    last = {row: node for node, row in enumerate(rows) if row is not None}  # of a row, its last node: the leaf
    if not step.ranks:
        return {}, {}
    owners = groupby(sorted(last), key=lambda row: step.ranks[last[row]][0])
    owned = [(rank, [*theirs]) for rank, theirs in owners]
    areas = {
        "x": [end + 0.4] * len(owned),
        "y": [(theirs[0] + theirs[-1]) / 2 for _, theirs in owned],
        "width": [theirs[-1] - theirs[0] + 0.94 for _, theirs in owned],
    }
    named = {
        "x": [end] * len(owned),
        "y": [theirs[0] - 0.47 for _, theirs in owned],
        "text": {"strings": [f"rank {rank}" for rank, _ in owned]},
    }
    return areas, named


def readers_in_words(header: Header, step: Step) -> str:
    """Say how much of a step each rank read."""
    if not shared(header) or not step.ranks:
        return ""
    read = [str(sum(rank in readers for readers in step.ranks)) for rank in step.ranks[0]]
    each = f"{', '.join(read[:-1])} and {read[-1]}" if len(read) <= _NAMED else f"at most {max(map(int, read))} each"
    return f"The {len(read)} ranks read {each} of the tree's rows, and exchanged {step.exchanged:,} bytes."
