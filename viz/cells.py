"""What figures of tokens are made of: cells with a token in them, small signs, labels, and one plain layout.

A trace with a "cell_layer" is drawn by the page itself: "squares" of one size, each of one colour, with a word in the
middle; "signs" of one size and colour; "words" beside a place, all alike. Without the page, plotly draws it as well: it
is an ordinary scatter trace but for that key. What has no such key is plotly's on the page, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .palette import FATE_RANGE, FATE_SCALE
from .stream.encode import Value, pack, tokens

Trace = dict[str, Any]
Phase = Literal["propose", "verify", "accept", "commit"]

CUT = 5  # characters of a token in a cell
SIZE = 25  # pixels of a cell
LIFT = 0.42  # rows from the middle of a cell to the sign on its upper edge
PITCH = 29  # pixels from one cell to the next that they need side by side
WIDE, WIDE_CUT = 33, 6  # the same where there are fewer cells
_WRAPPED = 29  # bytes around a packed array
_FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 11, "color": "$text"}


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
    trace = points(mode, marker=look, hoverinfo="none", cell_layer="squares")
    return trace | {"textposition": "middle center", "textfont": {"size": 9.5, "color": "$text"}} if text else trace


def signs(size: int = 6, *, lifted: bool = False) -> Trace:
    """Small marks: the second sign beside a cell's colour. `lifted` ones belong to the axis "yaxis3"."""
    look = {"size": size, "color": "$text", "line": {"width": 1, "color": "$text"}}
    return points("markers", marker=look, cell_layer="signs") | ({"yaxis": "y3"} if lifted else {})


def lifted(yaxis: Mapping[str, Any], by: float = LIFT) -> dict[str, Any]:
    """The axis of signs that have the places of cells, but lie on their upper edges."""
    first, last = yaxis["range"]
    same = {name: value for name, value in yaxis.items() if name == "domain"}
    return axis(0, 1, range=[first + by, last + by], overlaying="y", **same)


def labels(side: Literal["left", "right"], colour: str = "$muted") -> Trace:
    """Words beside cells, on the left or on the right of their place."""
    look = {"textposition": f"middle {side}", "textfont": {"size": 11, "color": colour}}
    return points("text", **look, cell_layer="words")


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
