"""Draws the landscape of a text as a Plotly figure, for notebooks."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from decoding.errors import ParamError

from .landscape_rows import (
    LEGEND,
    OTHER,
    Column,
    LandscapeRow,
    about_silent,
    about_text,
    measured_tokens,
    rows,
    sentence,
)
from .palette import THEMES
from .token_text import escaped

_FONT = "system-ui, sans-serif"
_STRONGEST = 6  # accepted guesses from which on the colour is the strongest
_SHARE = {"light": 1.0, "dark": 0.7}  # of the strongest colour: a digit on it has a contrast of 4.5
_CELL, _LETTER = 22, 8  # pixels
_ABOVE, _BELOW, _BESIDE = 104, 24, 190  # pixels around the cells: title and legend, room below tokens, methods
_WIDEST = 400  # tokens that are seen at once: further ones are reached by dragging
_LINE = 90  # characters of a line of the words on a cell


def landscape(found: Mapping[str, Any], theme: str = "light") -> go.Figure:
    """Draw what `measure_landscape` returned as a heat map: a row for each method, a column for each token.

    A cell's digit is the number of guesses that the target would accept if a step began before the token. Its hover
    text says what the method would guess first, and what the step would write.
    """
    if theme not in THEMES:
        raise ParamError(f"there is no theme {theme[:40]!r}: choose one of {', '.join(THEMES)}")
    if not isinstance(found, Mapping) or "methods" not in found or "choices" not in found:
        raise ParamError("give what an engine's landscape returns")
    if not found["methods"]:
        raise ParamError("this landscape has no method: it was ended before the first one was measured")
    colours, tokens, methods = THEMES[theme], measured_tokens(found), rows(found)
    cells: dict[str, Any] = {
        "type": "heatmap",
        "z": [row.accepted for row in methods],
        "text": [row.signs for row in methods],
        "texttemplate": "%{text}",
        "textfont": {"color": colours["text"]},
        "hovertext": [_sentences(row, tokens) for row in methods],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "hoverongaps": True,
        "zmin": 0,
        "zmax": _STRONGEST,
        "colorscale": [[0, colours["paper"]], [1, _mixed(colours, _SHARE[theme])]],
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
    }
    look = {"showgrid": False, "zeroline": False, "color": colours["text"], "ticks": ""}
    seen = min(len(tokens), _WIDEST)
    heads = [escaped(column.text if column.is_choice else f"{OTHER} {column.text}") for column in tokens]
    names = [f"{escaped(row.label)} <b>{row.mean}</b>" for row in methods]
    below = _BELOW + _LETTER * max(len(column.text) for column in tokens)
    words = " ".join(filter(None, (about_text(tokens), about_silent(methods))))
    layout = {
        "template": "none",
        "paper_bgcolor": colours["paper"],
        "plot_bgcolor": colours["faint"],
        "font": {"color": colours["text"], "family": _FONT, "size": 12},
        "title": {
            "text": escaped(f"What if a step began here? {found['model'][:60]}"),
            "font": {"size": 15},
            "subtitle": {"text": "<br>".join(map(escaped, (LEGEND, words))), "font": {"size": 12}},
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "top",
            "pad": {"l": 12, "t": 14},
        },
        "xaxis": {
            **look,
            "tickvals": [*range(len(tokens))],
            "ticktext": heads,
            "tickangle": -90,
            "range": [-0.5, seen - 0.5],
        },
        "yaxis": {**look, "tickvals": [*range(len(names))], "ticktext": names, "autorange": "reversed"},
        "height": _ABOVE + _CELL * len(methods) + below,
        "width": max(760, _BESIDE + _CELL * seen),  # the legend needs so much
        "margin": {"l": _BESIDE, "r": 8, "t": _ABOVE, "b": below},
        "dragmode": "pan",
        "hoverlabel": {
            "bgcolor": colours["panel"],
            "bordercolor": colours["line"],
            "font": {"color": colours["text"]},
            "align": "left",
        },
    }
    return go.Figure(data=[cells], layout=layout)


def _mixed(colours: Mapping[str, str], share: float) -> str:
    """Return the colour of accepted guesses, mixed with the paper's colour in this share."""
    accepted, paper = (bytes.fromhex(colours[name].removeprefix("#")) for name in ("accepted", "paper"))
    return "#" + bytes(round(share * a + (1 - share) * b) for a, b in zip(accepted, paper, strict=True)).hex()


def _sentences(row: LandscapeRow, tokens: Sequence[Column]) -> list[str]:
    """Return the hover text of each cell of a row."""
    whole = (sentence(row.label, column.words, words) for column, words in zip(tokens, row.words, strict=True))
    return ["<br>".join(map(escaped, textwrap.wrap(text, _LINE))) for text in whole]
