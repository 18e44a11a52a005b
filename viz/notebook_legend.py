"""Draws a legend of a figure's colours and signs with plotly; the page has a line for it instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .cells import PlotTrace, points
from .fates import emitted_fates, node_fates
from .palette import Fate, meanings
from .run_state import RunState
from .view import Figure, View

_WIDE, _SIGN, _LETTER, _LINE = 800, 40, 7, 19  # pixels of a line, and of an entry's sign, letter and line
_LEGENDS = ("legend", "legend2")


def entries(view: View, base: Figure, run: RunState) -> list[PlotTrace]:
    """Return traces without points, an entry each: of the fates, and below them of what else the view draws.

    There are none for a view that explains itself.
    """
    if view.kind not in ("plot", "stage") or view.grows or view.pinned:
        return []
    used = {Fate.PROMPT, *base.get("draws", ())}
    for step in run.steps:
        used |= {*node_fates(step), *emitted_fates(step)}
    fate_meanings = meanings(lossless=run.header.lossless)
    fates = [_entry(meaning.label, meaning.symbol, meaning.colour) for meaning in fate_meanings if meaning.fate in used]
    return fates + [_of_key(item) | {"legend": "legend2"} for item in base.get("key", ())]


def height(traces: Sequence[PlotTrace]) -> int:
    """Return pixels that both legends take: the entries of each are all as wide as its longest one."""
    return sum(_height(traces, legend) for legend in _LEGENDS)


def layout(traces: Sequence[PlotTrace], top: int, height: int, colour: str) -> dict[str, Any]:
    """Return where the legends of a figure lie that is `height` pixels high: `top` pixels below its edge."""
    if not traces:
        return {}
    place = {"orientation": "h", "x": 0, "xanchor": "left", "xref": "container", "yref": "container"}
    place |= {"yanchor": "top", "bgcolor": "rgba(0,0,0,0)", "itemsizing": "constant"}
    place |= {"itemclick": False, "itemdoubleclick": False, "font": {"size": 12, "color": colour}}
    tops = {"legend": top, "legend2": top + _height(traces, "legend")}
    return {"showlegend": True} | {name: place | {"y": 1 - tops[name] / height} for name in _LEGENDS}


def _height(traces: Sequence[PlotTrace], legend: str) -> int:
    names = [trace["name"] for trace in traces if trace["legend"] == legend]
    columns = max(1, _WIDE // (_SIGN + _LETTER * max(map(len, names), default=0)))
    return _LINE * -(-len(names) // columns)


def _of_key(item: Mapping[str, Any]) -> PlotTrace:
    """Return the entry of what is no token's fate: a symbol, a sample of writing, a line, or an area."""
    if "sample" in item:
        return _entry(f"<i>{item['sample']}</i> {item['words']}", "circle", "rgba(0,0,0,0)")
    if "symbol" in item:
        return _entry(item["words"], item["symbol"], item["colour"])
    if "thin" in item:
        return _listed(points("lines", line={"color": item["colour"], "width": 4}), item["words"])
    pattern = {"shape": item.get("hatch", ""), "fgcolor": item.get("ink", item["colour"]), "size": 5}
    marker = {"color": item["colour"], "pattern": pattern | {"fillmode": "overlay"}, "line": {"width": 0}}
    return _listed({"type": "bar", "hoverinfo": "skip", "marker": marker}, item["words"])


def _entry(words: str, symbol: str, colour: str) -> PlotTrace:
    line = {"color": colour, "width": 1.5 if "open" in symbol or symbol in ("x", "hash") else 0}
    return _listed(points("markers", marker={"symbol": symbol, "color": colour, "size": 9, "line": line}), words)


def _listed(trace: PlotTrace, words: str) -> PlotTrace:
    return trace | {"x": [None], "y": [None], "name": words, "showlegend": True, "legend": "legend"}
