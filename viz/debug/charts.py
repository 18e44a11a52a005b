"""Draws a metric's rows as a plotly figure, alone or beside those of a second selection.

Colours are the palette's names: ink and greys, since colour is for what became of tokens. The second selection is
hatched or dashed, so that no colour is needed to tell the two apart. Every point carries the number of its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..cells import PlotTrace
from ..token_text import cut, escaped
from ..view import Figure

# Names of the columns that are drawn upwards: the first one that a result has.
_VALUES = (
    "share",
    "speed-up",
    "tokens per step",
    "times",
    "autoregressive steps",
    "alpha",
    "accepted",
    "ms",
    "guesses",
    "steps",
)
_SHARES = {"share", "alpha", "accepted", "confidence", "drafter from", "target from", "acceptance rate"}
_HEIGHT = 260
_SMALL = 0.05  # shares below which an axis has a range of its own
_LETTERS = 34  # of a bar's name
_LYING = 9  # letters of a name from which on bars lie, so that it can be read


@dataclass(frozen=True, slots=True)
class Side:
    """A result to be drawn, and the name of its selection."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    second: bool = False  # hatched or dashed

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        place = list(self.columns).index(name)
        return [row[place] for row in self.rows]


def chart(kind: str, sides: Sequence[Side]) -> Figure | None:
    """Return the figure of one or two results of the same metric; None for results that are better as text."""
    drawn = [side for side in sides if side.rows]
    if not drawn or kind not in _KINDS:
        return None
    return _KINDS[kind](drawn)


def differences(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Figure | None:
    """Draw differences with their intervals, one above the other, and the line of no difference."""
    side = Side("B - A", columns, rows)
    kept = [place for place, value in enumerate(side.column("difference")) if value is not None] if rows else []
    kept = [place for place in kept if rows[place][0] in ("all", "position", "category")]
    if not kept:
        return None
    names = [
        escaped(f"{rows[place][0]} {rows[place][1]}" if rows[place][0] != "all" else str(rows[place][1]))
        for place in kept
    ]
    value, low, high = ([side.column(name)[place] for place in kept] for name in ("difference", "low", "high"))
    beyond = [bool(side.column("beyond noise")[place]) for place in kept]
    above = [max(0.0, top - mid) if top is not None else 0 for mid, top in zip(value, high, strict=True)]
    below = [max(0.0, mid - end) if end is not None else 0 for mid, end in zip(value, low, strict=True)]
    whiskers = {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "color": "$muted",
        "thickness": 2,
    }
    marks = {"color": "$text", "size": 10, "symbol": ["diamond" if each else "circle-open" for each in beyond]}
    trace: PlotTrace = {
        "type": "scatter",
        "mode": "markers",
        "x": value,
        "y": names,
        "error_x": whiskers,
        "marker": marks,
    }
    trace |= {"customdata": kept, "hovertemplate": "%{y}: %{x:+.3f}<extra>B - A</extra>", "name": "B - A"}
    zero = {
        "type": "line",
        "x0": 0,
        "x1": 0,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": "$text", "width": 1, "dash": "dot"},
    }
    axes = _axis("B - A (filled: beyond noise)", {}), _axis("", {"autorange": "reversed", "type": "category"})
    figure = _figure([trace], [side], *axes)
    figure["layout"] |= {"shapes": [zero], "height": 110 + 26 * len(kept)}
    return figure


def _bars(sides: Sequence[Side]) -> Figure:
    value, data = _value(sides[0]), list[PlotTrace]()
    lie = any(len(name) > _LYING for side in sides for name in _short(side))
    along, up = ("y", "x") if lie else ("x", "y")
    for side in sides:
        look: PlotTrace = {"color": "$time_draft", "line": {"width": 1, "color": "$text"}}
        if side.second:
            look["pattern"] = {"shape": "/", "size": 6, "bgcolor": "$paper", "fgcolor": "$text", "fillmode": "overlay"}
        trace: PlotTrace = {
            "type": "bar",
            along: _names(side),
            up: side.column(value),
            "marker": look,
            "name": side.name,
        }
        trace |= {"orientation": "h"} if lie else {}
        trace |= {f"error_{up}": whiskers} if (whiskers := _whiskers(side, value)) else {}
        data.append(trace | _rows(side, along, up))
    named, numbers = _axis("" if lie else str(sides[0].columns[0]), {"type": "category"}), _y_axis(sides, value)
    if not lie:
        return _figure(data, sides, named, numbers)
    figure = _figure(data, sides, numbers, named | {"autorange": "reversed"})
    rows = max(len(side.rows) for side in sides) * len(sides)
    figure["layout"]["height"] = max(_HEIGHT, 90 + 18 * rows)
    return figure


def _lines(sides: Sequence[Side]) -> Figure:
    if {"confidence", "accepted"} <= set(sides[0].columns):
        return _against(sides, "confidence", "accepted")
    value, x, data = _value(sides[0]), sides[0].columns[0], list[PlotTrace]()
    second = "accepted" if value == "alpha" and len(sides) == 1 else None
    for side in sides:
        data.append(_line(side, side.column(x), value, side.name, side.second))
    if second:
        data.append(_line(sides[0], sides[0].column(x), second, "of the sampled: accepted", True))
        data[0]["name"] = "sum of min(p, q)"
    figure = _figure(data, sides, _x_axis(sides, {"dtick": 1} if _are_few(sides) else {}), _y_axis(sides, value))
    figure["layout"]["showlegend"] = len(data) > 1
    return figure


def _against(sides: Sequence[Side], x: str, y: str) -> Figure:
    """Draw one share against another, and the line on which they are equal."""
    equal: PlotTrace = {"type": "scatter", "mode": "lines", "x": [0, 1], "y": [0, 1], "hoverinfo": "skip"}
    equal |= {"line": {"color": "$muted", "width": 1, "dash": "dot"}, "name": "perfectly calibrated"}
    data = [equal] + [_line(side, side.column(x), y, side.name, side.second) for side in sides]
    axes = _axis(f"{x} of the drafter", {"range": [0, 1]}), _axis(f"share {y}", {"range": [0, 1.02]})
    return _figure(data, sides, *axes)


def _line(side: Side, x: list[Any], value: str, name: str, dashed: bool) -> PlotTrace:
    ink = "$muted" if dashed else "$text"
    trace: PlotTrace = {"type": "scatter", "mode": "lines+markers", "x": x, "y": side.column(value), "name": name}
    trace |= {"line": {"color": ink, "width": 2, "dash": "dash" if dashed else "solid"}}
    trace |= {"marker": {"color": ink, "size": 9 if dashed else 7, "symbol": "diamond-open" if dashed else "circle"}}
    trace |= {"error_y": whiskers} if (whiskers := _whiskers(side, value)) else {}
    return trace | _rows(side)


def _heat(sides: Sequence[Side]) -> Figure:
    """Draw cells over the first two columns; a second result has its own panel."""
    across, up = sides[0].columns[:2]
    value = _value(sides[0], ("share", "guesses", "steps"))
    highest = max((each for side in sides for each in side.column(value) if each is not None), default=1)
    data = list[PlotTrace]()
    for number, side in enumerate(sides):
        x, y = (sorted(set(side.column(name))) for name in (across, up))
        cells: list[list[Any]] = [[None] * len(x) for _ in y]
        rows: list[list[Any]] = [[None] * len(x) for _ in y]
        for place, (left, low, z) in enumerate(zip(*(side.column(name) for name in (across, up, value)), strict=True)):
            cells[y.index(low)][x.index(left)] = z
            rows[y.index(low)][x.index(left)] = place
        trace: PlotTrace = {"type": "heatmap", "x": x, "y": y, "z": cells, "customdata": rows, "meta": int(side.second)}
        trace["showscale"] = not number
        trace |= {"zmin": 0, "zmax": highest, "colorscale": [[0, "$faint"], [0.5, "$time_draft"], [1, "$text"]]}
        trace |= {"hovertemplate": f"{across} %{{x}}, {up} %{{y}}: %{{z}} {value}<extra>{escaped(side.name)}</extra>"}
        trace |= {"xgap": 1, "ygap": 1, "hoverongaps": False}
        trace["colorbar"] = {"thickness": 8, "outlinewidth": 0, "tickfont": {"color": "$muted", "size": 11}}
        data.append(trace | ({"xaxis": "x2", "yaxis": "y2"} if number else {}))
    figure = _figure(data, sides, _axis(across, _cells_axis(sides[:1], across)), _axis(up, _cells_axis(sides, up)))
    if len(sides) > 1:
        first, other = (f"{side.name.partition(':')[0]}: {across}" for side in sides)  # no room for whole names
        figure["layout"]["xaxis"] = _axis(first, {"domain": [0, 0.47]} | _cells_axis(sides[:1], across))
        second = {"domain": [0.53, 1], "anchor": "y2"} | _cells_axis(sides[1:], across)
        figure["layout"]["xaxis2"] = _axis(other, second)
        figure["layout"]["yaxis2"] = _axis("", {"anchor": "x2", "matches": "y", "showticklabels": False})
    return figure


def _cells_axis(sides: Sequence[Side], name: str) -> PlotTrace:
    """Return an axis with a tick for each number, if there are few."""
    numbers = sorted({number for side in sides for number in side.column(name)})
    return {"tickvals": numbers} if len(numbers) <= 12 else {}


_KINDS: Mapping[str, Callable[[Sequence[Side]], Figure]] = {"bars": _bars, "lines": _lines, "heat": _heat}


def _value(side: Side, preferred: Sequence[str] = _VALUES) -> str:
    """Return the column that is drawn upwards."""
    column = next((name for name in preferred if name in side.columns[1:]), None)
    return column or str(side.columns[1])


def _names(side: Side) -> list[str]:
    """Return the names of bars, as plotly reads them; the same name twice would be one bar."""
    short = _short(side)
    return [
        escaped(name) if short.count(name) == 1 else escaped(f"{place + 1}. {name}") for place, name in enumerate(short)
    ]


def _short(side: Side) -> list[str]:
    """Return the names of bars, cut."""
    names = ["other" if row[0] is None else str(row[0]) for row in side.rows]
    return [cut(name, _LETTERS) for name in names]


def _whiskers(side: Side, value: str) -> PlotTrace | None:
    """Return plotly's error bars, if the drawn column has an interval."""
    columns = list(side.columns)
    if not {"low", "high"} <= set(columns) or columns.index("low") < columns.index(value) or value == "alpha":
        return None
    triples = list(zip(side.column(value), side.column("low"), side.column("high"), strict=True))
    complete = [None not in triple for triple in triples]
    above = [max(0.0, high - y) if fine else 0 for (y, _, high), fine in zip(triples, complete, strict=True)]
    below = [max(0.0, y - low) if fine else 0 for (y, low, _), fine in zip(triples, complete, strict=True)]
    look: PlotTrace = {"color": "$muted", "thickness": 1, "width": 3}
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, **look}


def _rows(side: Side, along: str = "x", up: str = "y") -> PlotTrace:
    """Return the hover text of each point, and the number of its row."""
    says = f"%{{{along}}}: %{{{up}:.4~g}}<extra>{escaped(side.name)}</extra>"
    return {"customdata": list(range(len(side.rows))), "meta": int(side.second), "hovertemplate": says}


def _are_few(sides: Sequence[Side]) -> bool:
    return max(len(side.rows) for side in sides) <= 16


def _x_axis(sides: Sequence[Side], more: PlotTrace) -> PlotTrace:
    return _axis(str(sides[0].columns[0]), more)


def _y_axis(sides: Sequence[Side], value: str) -> PlotTrace:
    """Return an axis that begins at 0. For small shares it reaches 10%, or all of its ticks would be 0%."""
    if value not in _SHARES or value == "accepted":
        return _axis(value, {"rangemode": "tozero"})
    highest = max((each for side in sides for each in side.column(value) if each is not None), default=0)
    return _axis(value, {"tickformat": ".0%"} | ({"range": [0, 0.1]} if highest < _SMALL else {"rangemode": "tozero"}))


def _axis(title: str, more: PlotTrace) -> PlotTrace:
    look: PlotTrace = {"title": {"text": escaped(title), "font": {"size": 12, "color": "$muted"}, "standoff": 6}}
    look |= {"gridcolor": "$faint", "linecolor": "$line", "zerolinecolor": "$line", "automargin": True}
    return look | {"tickfont": {"size": 11, "color": "$muted"}, "fixedrange": True} | more


def _figure(data: list[PlotTrace], sides: Sequence[Side], x: PlotTrace, y: PlotTrace) -> Figure:
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12, "color": "$text"}}
    legend |= {"itemclick": False, "itemdoubleclick": False, "bgcolor": "rgba(0,0,0,0)"}
    layout: PlotTrace = {"xaxis": x, "yaxis": y, "height": _HEIGHT, "margin": {"l": 44, "r": 8, "t": 8, "b": 40}}
    layout |= {"paper_bgcolor": "$paper", "plot_bgcolor": "$paper", "showlegend": len(sides) > 1, "legend": legend}
    layout |= {"hovermode": "closest", "dragmode": False, "bargap": 0.25, "barmode": "group"}
    layout["hoverlabel"] = {"bgcolor": "$panel", "bordercolor": "$line", "font": {"color": "$text", "size": 12}}
    return {"data": data, "layout": layout}
