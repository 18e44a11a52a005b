"""What figures of tokens are made of: layers of equal cells, plotly's lines and points, and one plain layout.

A figure's "data" holds layers and plotly's traces. A layer is a dictionary with these keys, most of them columns with
a value for each of its places; the page's player draws it itself, and `as_trace` says it in plotly's words.

"layer"      "squares" with a token in each, "signs", or "labels": words beside their places
"x", "y"     the places; "yaxis": the axis of y, where it is not the figure's first
"nodes"      the node that each square shows; -1: none
"size"       pixels of a square or sign
"span"       columns and rows that each square fills instead, for longer texts
"opacity"    of the squares: one for all, or one for each
"colour"     of all squares or signs; squares without it have the colours of their fates
"fate"       the fate of each square, by its code
"sign"       the symbol of each sign, as `palette.Meaning` names it, or its number among the layer's "signs"
"stroke"     pixels of a sign's outline
"text"       the words in squares or labels; "font" and "ink": their size and colour; squares without "font" hold none
"side"       of the place on which labels stand: "left" or "right"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, get_args

from .palette import FATE_COUNT, FATE_RANGE
from .stream.encode import Encoded, pack, tokens

CellLayer = dict[str, Any]  # see above
PlotTrace = dict[str, Any]  # of plotly
StepPhase = Literal["propose", "verify", "answers", "accept", "commit"]  # in lessons p, v, w, a and c
STEP_PHASES: tuple[StepPhase, ...] = get_args(StepPhase)


class Sign(IntEnum):
    """What a pool did with an n-gram, or a mark around a cell, as an index into `SYMBOLS`. Of these signs only the star
    is also a fate's, that of an inspired guess.
    """

    PLUS = 0
    DOWN = 1
    BOXED_PLUS = 2
    MINUS = 3
    STAR = 4
    FRAME = 5


SYMBOLS = ("cross", "triangle-down", "square-cross-open", "line-ew-open", "star-open", "octagon-open")

CUT = 5  # characters of a token in a cell
SIZE = 28  # pixels of a cell
LETTERS = 12  # pixels of all words in figures: at the least what is read on a projector
LIFT = 0.42  # rows from the middle of a cell to the sign on its upper edge
PITCH = 36  # pixels from one cell to the next that they need side by side
DOWN = 31  # the same from one row to the next
WIDE, WIDE_CUT = 54, 6  # pixels of a column of wide cells, and characters of a token in one
SPAN = (0.92, 0.9)  # columns and rows of a wide cell: at least 49 pixels, the width of six characters of most tokens
_WRAPPED = 29  # bytes around a packed array
_FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": LETTERS, "color": "$text"}


def packed(values: Sequence[float]) -> Encoded:
    """Return numbers in as few bytes as they need: few of them as plain ones."""
    plain = [int(value) if value == int(value) else round(value, 3) for value in values]
    if not plain or not all(isinstance(value, int) for value in plain):
        return plain
    least, most = min(plain), max(plain)
    kinds = (("u1", 0, 255), ("i1", -128, 127), ("i2", -(2**15), 2**15 - 1))
    kind = next((kind for kind, low, high in kinds if low <= least and most <= high), "i4")
    base64_length = -(-int(kind[1]) * len(plain) // 3) * 4
    plain_length = len(str(plain)) - len(plain) + 1  # without the spaces after commas
    return pack(plain, kind) if base64_length + _WRAPPED < plain_length else plain


def at(xs: Sequence[float], ys: Sequence[float]) -> PlotTrace:
    """Return where points are."""
    return {"x": packed(xs), "y": packed(ys)}


def texts(given: Sequence[int], cut: int = CUT) -> Encoded:
    """Return token texts that fit into cells."""
    return {**tokens(given), "cut": cut}


def squares(
    colour: str | None = None, *, size: int = SIZE, text: bool = True, opacity: float = 0.35, wide: bool = False
) -> CellLayer:
    """Return squares with a token in each, of one colour or, without it, of the colours of their fates."""
    look: CellLayer = {"layer": "squares", "x": [], "y": [], "opacity": opacity}
    look |= {"span": SPAN} if wide else {"size": size}
    look |= {} if colour is None else {"colour": colour}
    return look | {"font": LETTERS, "ink": "$text"} if text else look


def signs(size: int = 6, *, lifted: bool = False, stroke: float = 1) -> CellLayer:
    """Return small marks: the second sign beside a cell's colour. `lifted` ones belong to the axis "yaxis3"."""
    look: CellLayer = {"layer": "signs", "x": [], "y": [], "size": size, "colour": "$text", "stroke": stroke}
    return look | {"yaxis": "y3"} if lifted else look


def named_signs(size: int) -> CellLayer:
    """Return marks that are given as `Sign`s."""
    return signs(size) | {"signs": SYMBOLS}


def lifted(yaxis: Mapping[str, Any], by: float = LIFT) -> dict[str, Any]:
    """Return the axis of signs that have the places of cells, but lie on their upper edges."""
    first, last = yaxis["range"]
    same = {name: value for name, value in yaxis.items() if name == "domain"}
    return axis(0, 1, range=[first + by, last + by], overlaying="y", **same)


def labels(side: Literal["left", "right"], colour: str = "$muted") -> CellLayer:
    """Return words beside cells, on the left or on the right of their place."""
    return {"layer": "labels", "x": [], "y": [], "side": side, "font": LETTERS, "ink": colour}


def line(colour: str, width: float = 1.5, dash: str = "solid") -> PlotTrace:
    """Return a line through cells."""
    return points("lines", line={"color": colour, "width": width, "dash": dash, "simplify": False})


def points(mode: str, **more: Any) -> PlotTrace:
    """Return a trace without points, which does not catch the pointer unless `more` says so."""
    empty: PlotTrace = {"type": "scatter", "mode": mode, "x": [], "y": [], "hoverinfo": "skip"}
    return empty | {"showlegend": False, "cliponaxis": False} | more


def as_trace(layer: CellLayer, fills: Sequence[str]) -> PlotTrace:
    """Return a layer with plain values as the trace that plotly draws it from; `fills` are the colours of the fates."""
    kind, same = layer["layer"], ("x", "y", "yaxis", "text", "visible")
    trace: PlotTrace = {name: layer[name] for name in same if name in layer}
    trace |= {"customdata": layer["nodes"]} if "nodes" in layer else {}
    if "font" in layer:
        position = "middle center" if kind == "squares" else f"middle {layer['side']}"
        trace |= {"textposition": position, "textfont": {"size": layer["font"], "color": layer["ink"]}}
    if "span" in layer:
        return trace | _bars(layer, fills)
    if kind == "squares":
        mode = "markers+text" if "font" in layer else "markers"
        marker = {"symbol": "square", "size": layer["size"]} | _fill(layer, fills)
        return points(mode) | trace | {"hoverinfo": "none", "marker": marker}
    return points("text") | trace if kind == "labels" else points("markers") | trace | {"marker": _sign(layer)}


def _bars(layer: CellLayer, fills: Sequence[str]) -> PlotTrace:
    """Return wide cells as bars: plotly's markers are as high as they are wide."""
    columns, rows = layer["span"]
    base, across = [x - columns / 2 for x in layer["x"]], [columns for _ in layer["x"]]
    where = {"type": "bar", "orientation": "h", "base": base, "x": across, "width": rows, "offset": -rows / 2}
    words = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0, "constraintext": "none"}
    fill = {"marker": _fill(layer, fills), "hoverinfo": "none"}
    return where | words | fill | {"showlegend": False, "cliponaxis": False}


def _fill(layer: CellLayer, fills: Sequence[str]) -> dict[str, Any]:
    """Return how squares are filled: of fates, with one flat band of the colour scale for each code."""
    look = {"opacity": layer["opacity"], "line": {"width": 0}}
    if "colour" in layer:
        return look | {"color": layer["colour"]}
    scale = [[(code + end) / FATE_COUNT, fill] for code, fill in enumerate(fills) for end in (0, 1)]
    look |= {"colorscale": scale, "cmin": FATE_RANGE[0], "cmax": FATE_RANGE[1], "showscale": False}
    return look | {"color": layer["fate"]} if "fate" in layer else look


def _sign(layer: CellLayer) -> dict[str, Any]:
    look = {"size": layer["size"], "color": layer["colour"]}
    look |= {"line": {"width": layer["stroke"], "color": layer["colour"]}}
    if "sign" not in layer:
        return look
    names: Sequence[str] = layer.get("signs", ())
    return look | {"symbol": [each if isinstance(each, str) else names[each] for each in layer["sign"]]}


def axis(least: float, most: float, *, down: bool = False, **more: Any) -> dict[str, Any]:
    """Return a bare axis of fixed range."""
    bare = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "fixedrange": True}
    ends = [most, least] if down else [least, most]
    return bare | {"range": ends, "tickfont": {"size": LETTERS, "color": "$muted"}, "showticklabels": False} | more


def layout(height: int, xaxis: Mapping[str, Any], yaxis: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the layout that all these figures have."""
    plain = {"paper_bgcolor": "$paper", "plot_bgcolor": "$paper", "font": _FONT, "showlegend": False}
    plain |= {"hovermode": "closest", "dragmode": False, "uirevision": "same", "height": height}
    margin = {"l": 8, "r": 8, "t": 8, "b": 8, "pad": 0}
    return plain | {"margin": margin, "xaxis": dict(xaxis), "yaxis": dict(yaxis)} | more


def ticks(places: Mapping[float, str]) -> dict[str, Any]:
    """Return words at places of an axis."""
    return {"tickmode": "array", "tickvals": [*places], "ticktext": [*places.values()], "showticklabels": True}


def note(words: str, x: float, y: float, anchor: str) -> dict[str, Any]:
    """Return quiet words at a place of the figure."""
    where = {"x": x, "y": y, "xanchor": anchor, "yanchor": "middle", "showarrow": False}
    return {"text": words, "font": {"size": LETTERS, "color": "$muted"}, **where}
