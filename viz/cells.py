"""What the figures of tokens are made of: cells with a token in them, small signs, labels, and one plain layout."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from decoding.types import Step

from .encode import Value, fates, node, pack, tokens
from .palette import FATE_RANGE, FATE_SCALE, Fate
from .story import node_fates

Trace = dict[str, Any]
_Cell = tuple[int, float, float, int, Fate]  # token, column, row, node, fate
Phase = Literal["propose", "verify", "accept", "commit"]

CUT = 5  # characters of a token in a cell
SIZE = 25  # pixels of a cell
LIFT = 0.42  # rows from the middle of a cell to the sign on its upper edge
PITCH = 29  # pixels from one cell to the next that they need side by side
WIDE, WIDE_CUT = 33, 6  # the same where there are fewer cells
_WRAPPED = 29  # bytes around a packed array
_FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 11, "color": "$text"}
# What the pool did with an n-gram, as numbers of plotly's markers: a dot, a ring, a crossed ring.
OUTCOMES = {"added": 0, "refreshed": 100, "evicted-oldest": 128}
GONE, GAINED = 4, 117  # a cross for what was dropped, a star for what the target helped to make
# The same signs in words, for tables.
SIGNED = {
    "0": "new",
    "100": "refreshed",
    "128": "new, the oldest of its key evicted",
    f"{GONE}": "evicted",
    f"{GAINED}": "helped by the target",
}


def packed(values: Sequence[float]) -> Value:
    """Numbers in as few bytes as they need: few of them as plain ones."""
    plain = [value if value == int(value) else round(value, 3) for value in values]
    if not plain or not all(isinstance(value, int) for value in plain):
        return plain
    least, most = min(plain), max(plain)
    kinds = (("u1", 0, 255), ("i1", -128, 127), ("i2", -(2**15), 2**15 - 1))
    small = pack(plain, next((kind for kind, low, high in kinds if low <= least and most <= high), "i4"))
    return small if len(small["bdata"]) + _WRAPPED < len(json.dumps(plain, separators=(",", ":"))) else plain


def at(xs: Sequence[float], ys: Sequence[float]) -> Trace:
    """Where points are."""
    return {"x": packed(xs), "y": packed(ys)}


def texts(given: Sequence[int], cut: int = CUT) -> Value:
    """Token texts that fit into cells."""
    return {**tokens(given), "cut": cut}


def cells(colour: str | None, *, size: int = SIZE, text: bool = True, opacity: float = 0.35) -> Trace:
    """Squares with a token in each, of one colour or, with None, coloured by their fates."""
    look: dict[str, Any] = {"symbol": "square", "size": size, "opacity": opacity, "line": {"width": 0}}
    look |= {"colorscale": FATE_SCALE, "cmin": FATE_RANGE[0], "cmax": FATE_RANGE[1], "showscale": False}
    if colour is not None:
        look = {name: value for name, value in look.items() if name in ("symbol", "size", "opacity", "line")}
        look["color"] = colour
    mode = "markers+text" if text else "markers"
    trace = points(mode, marker=look, hoverinfo="none")
    return trace | {"textposition": "middle center", "textfont": {"size": 9.5, "color": "$text"}} if text else trace


def signs(size: int = 6, *, lifted: bool = False) -> Trace:
    """Small marks: the second sign beside a cell's colour. `lifted` ones belong to the axis "yaxis3"."""
    look = {"size": size, "color": "$text", "line": {"width": 1, "color": "$text"}}
    return points("markers", marker=look) | ({"yaxis": "y3"} if lifted else {})


def lifted(yaxis: Mapping[str, Any], by: float = LIFT) -> dict[str, Any]:
    """The axis of signs that have the places of cells, but lie on their upper edges."""
    first, last = yaxis["range"]
    same = {name: value for name, value in yaxis.items() if name == "domain"}
    return axis(0, 1, range=[first + by, last + by], overlaying="y", **same)


def labels(position: str, colour: str = "$muted") -> Trace:
    """Words beside cells."""
    return points("text", textposition=position, textfont={"size": 11, "color": colour})


def line(colour: str, width: float = 1.5, dash: str = "solid") -> Trace:
    """A line through cells."""
    return points("lines", line={"color": colour, "width": width, "dash": dash, "simplify": False})


def points(mode: str, **more: Any) -> Trace:
    """A trace without points, which does not catch the pointer unless `more` says so."""
    empty: Trace = {"type": "scatter", "mode": mode, "x": [], "y": [], "hoverinfo": "skip"}
    return empty | {"showlegend": False, "cliponaxis": False} | more


def axis(least: float, most: float, *, down: bool = False, **more: Any) -> dict[str, Any]:
    """A bare axis of fixed range."""
    bare = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True}
    ends = [most, least] if down else [least, most]
    return bare | {"range": ends, "tickfont": {"size": 10, "color": "$muted"}, "showticklabels": False} | more


def layout(height: int, xaxis: Mapping[str, Any], yaxis: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The layout that all these figures have."""
    plain = {"paper_bgcolor": "$paper", "plot_bgcolor": "$paper", "font": _FONT, "showlegend": False}
    plain |= {"hovermode": "closest", "dragmode": False, "uirevision": "same", "height": height}
    margin = {"l": 8, "r": 8, "t": 8, "b": 8, "pad": 0}
    return plain | {"margin": margin, "xaxis": dict(xaxis), "yaxis": dict(yaxis)} | more


def ticks(places: Mapping[float, str]) -> dict[str, Any]:
    """Words at places of an axis."""
    return {"tickmode": "array", "tickvals": [*places], "ticktext": [*places.values()], "showticklabels": True}


def note(words: str, x: float, y: float, anchor: str) -> dict[str, Any]:
    """Quiet words at a place of the figure."""
    where = {"x": x, "y": y, "xanchor": anchor, "yanchor": "middle", "showarrow": False}
    return {"text": words, "font": {"size": 10.5, "color": "$muted"}, **where}


class Board:
    """The points of one step on a board of cells, slot by slot; `traces` and `patch` have the same order."""

    phases: tuple[Phase, ...] = ("propose", "accept", "propose", "commit", "propose", "accept", "commit")
    nodes: tuple[str | None, ...] = ("points", None, "points", None, None, None, None)

    def __init__(self) -> None:
        self._guesses: list[tuple[float, float, int]] = []
        self._context: list[_Cell] = []
        self._learned: list[tuple[int, float, float, Fate]] = []
        self._words: dict[str, list[tuple[str, float, float]]] = {"label": [], "outcome": []}
        self._marks: list[tuple[int, float, float]] = []

    @staticmethod
    def traces(size: int = SIZE, *, text: bool = True) -> list[Trace]:
        """The traces without their points."""
        return [
            cells(None, size=size, text=text),
            signs(lifted=True),
            cells(None, size=size, text=text, opacity=0.22),
            cells(None, size=size, text=text, opacity=0.3),
            labels("middle left"),
            labels("middle right", "$text"),
            signs(9),
        ]

    @staticmethod
    def table(by: Literal["row", "column", "cell"], label: str, **more: Any) -> dict[str, Any]:
        """How the player tells a board as a table: what a row of it is, and what its first column holds.

        `more`: "split" is the column from which cells make rows of their own, and "sides" names both; "depth" adds
        where a row begins, "told" what the words in a cell's column are; "signs" are traces of signs, "signed" the
        meanings of their symbols; "total" is the trace of a number, "totals" what it counts.
        """
        return {"kind": "board", "by": by, "label": label, "signs": [6], "signed": SIGNED} | more

    def guess(self, place: int, x: float, y: float) -> None:
        """A node of the step that the target judges."""
        self._guesses.append((x, y, place))

    def context(self, token: int, x: float, y: float, fate: Fate, place: int = -1) -> None:
        """A token that is known from the beginning of the step."""
        self._context.append((token, x, y, place, fate))

    def learned(self, token: int, x: float, y: float, fate: Fate) -> None:
        """A token that the step brought."""
        self._learned.append((token, x, y, fate))

    def label(self, words: str, x: float, y: float) -> None:
        """Words that end at a place."""
        self._words["label"].append((words, x, y))

    def outcome(self, words: str, x: float, y: float) -> None:
        """Words that begin at a place and tell what became of a guess."""
        self._words["outcome"].append((words, x, y))

    def mark(self, symbol: int, x: float, y: float) -> None:
        """A sign for what became of a row."""
        self._marks.append((symbol, x, y))

    def patch(self, step: Step) -> list[Trace]:
        """What changes of every trace."""
        judged, marked = self._judged(step)
        return [
            judged,
            marked,
            _filled(self._context),
            _filled([(token, x, y, -1, fate) for token, x, y, fate in self._learned]),
            _written(self._words["label"]),
            _written(self._words["outcome"]),
            _marked(self._marks),
        ]

    def _judged(self, step: Step) -> tuple[Trace, Trace]:
        """The guesses in the order of their nodes, and the signs of their fates."""
        if not self._guesses:
            return {}, {}
        xs, ys, places = zip(*sorted(self._guesses, key=lambda guess: guess[2]), strict=True)
        columns, where = step_columns(step, places, WIDE_CUT), at(xs, ys)
        judged = where | {"text": columns["token"], "customdata": columns["id"], "marker": {"color": columns["fate"]}}
        return judged, where | {"marker": {"symbol": columns["symbol"]}}


def step_columns(step: Step, places: Sequence[int], cut: int) -> dict[str, Value]:
    """Texts, fates, signs and numbers of some nodes: the step's own columns where the nodes lie side by side."""
    first, stop = places[0], places[0] + len(places)
    if [*places] == [*range(first, stop)]:
        names: tuple[Literal["token", "fate", "symbol", "id"], ...] = ("token", "fate", "symbol", "id")
        own = {name: node(name, first, stop) for name in names}
        return own | {"token": {**own["token"], "cut": cut}}
    codes = [node_fates(step)[place] for place in places]
    told = {"token": texts([step.tokens[place] for place in places], cut), "id": packed(places)}
    return told | {"fate": fates(codes), "symbol": {"symbols": pack(codes, "u1")}}


def _filled(given: Sequence[_Cell]) -> Trace:
    if not given:
        return {}
    ids, xs, ys, nodes, codes = zip(*given, strict=True)
    filled = at(xs, ys) | {"text": texts(ids, WIDE_CUT), "marker": {"color": packed(codes)}}
    return filled | {"customdata": packed(nodes)} if any(place >= 0 for place in nodes) else filled


def _written(given: Sequence[tuple[str, float, float]]) -> Trace:
    if not given:
        return {}
    words, xs, ys = zip(*given, strict=True)
    return at(xs, ys) | {"text": {"strings": list(words)}}


def _marked(given: Sequence[tuple[int, float, float]]) -> Trace:
    if not given:
        return {}
    symbols, xs, ys = zip(*given, strict=True)
    return at(xs, ys) | {"marker": {"symbol": packed(symbols)}}
