"""Draws the views as Plotly figures, for notebooks: one step, or all of them with a slider and a play button."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from decoding.errors import ParamError
from decoding.trace import metrics
from decoding.types import Trace

from . import notebook_legend, token_text
from .cells import STEP_PHASES, StepPhase, as_trace
from .methods import label_of
from .palette import MEANINGS, THEMES
from .run_state import RunState
from .stage.picture import scene_figure as stage_picture
from .stream import encode
from .view import Figure
from .views import VIEWS, counters, text
from .views.check import Rescored
from .views.check import outcome_in_words as say_check
from .views.mask_words import sentences
from .views.pair import of_node

_FONT = "system-ui, sans-serif"
_TITLE, _CONTROLS = 44, 84  # pixels above and below a figure
_LINE, _PITCH = 100, 18  # characters of a line below the title, and pixels that it takes
_LISTS = ("shapes", "annotations")  # of a layout
# Plotly rejects what nobody waits for when a pause ends a play.
_QUIET = """document.getElementById("{plot_id}").on("plotly_animationinterrupted", () => addEventListener(
  "unhandledrejection", (event) => event.reason === undefined && event.preventDefault(), { once: true }));"""


def figure(
    trace: Trace,
    name: str,
    step: int | None = None,
    theme: str = "light",
    check: Rescored | None = None,
    speedup: float | None = None,
    node: int | None = None,
    phase: StepPhase | None = None,
) -> go.Figure:
    """Draw a view of one step, by default the last.

    `check` is the outcome of a rescore as a dictionary, for "check", and `speedup` the measured one, for "counters".
    `node` is the one that "pair" compares, or the one whose row "mask" explains. `phase` is "propose", "verify",
    "answers", "accept" or "commit": nothing is shown that is not known then. Without it the figure shows the whole
    step, and the stage how the guesses were judged.
    """
    if phase is not None and phase not in STEP_PHASES:
        raise ParamError(f"there is no phase {str(phase)[:40]!r}: choose one of {', '.join(STEP_PHASES)}")
    drawing = _Drawing(trace, name, theme, check, speedup, phase)
    k = drawing.last if step is None else step
    if not 0 <= k <= drawing.last:
        raise ParamError(f"step must be between 0 and {drawing.last}, the last one of this trace, not {step}")
    subtitle = drawing.subtitle(k, node)
    drawn = drawing.picture(k, node)
    at = f", step {k}" + (f", {phase}" if phase else "") + drawing.named(k, node)
    layout = drawing.framed(drawn["layout"], at, subtitle)
    return go.Figure(data=drawn["data"], layout={**layout, "template": "none"})


def animate(trace: Trace, name: str, theme: str = "light", check: Rescored | None = None) -> go.Figure:
    """Draw a view of all steps, with a slider and a play button that need only plotly."""
    drawing = _Drawing(trace, name, theme, check)
    drawn = [drawing.picture(k) for k in range(drawing.last + 1)]
    layouts = [picture["layout"] for picture in drawn]
    margins = [layout.get("margin", {}) for layout in layouts]
    widest = {side: max(margin.get(side, 8) for margin in margins) for side in ("l", "r", "t", "b")}
    room = {"height": max(layout.get("height", 450) for layout in layouts), "margin": widest}
    constant = ("title", "height", "margin", "showlegend", "updatemenus", "sliders")  # whatever a frame says
    frames = [
        go.Frame(
            name=str(k),
            data=picture["data"],
            layout={
                name: _filled(part, max(len(layout.get(name, ())) for layout in layouts)) if name in _LISTS else part
                for name, part in picture["layout"].items()
                if name not in constant
            },
        )
        for k, picture in enumerate(drawn)
    ]
    controls = _controls(len(drawn), THEMES[theme], widest["b"])
    layout = drawing.framed(layouts[0] | room, "", below=_CONTROLS) | controls
    return _Animation(data=drawn[0]["data"], layout={**layout, "template": "none"}, frames=frames)


class _Animation(go.Figure):  # type: ignore[misc]
    """A figure that starts with its play button: plotly would start it at once, and slide tokens from step to step."""

    def to_html(self, *args: Any, **more: Any) -> str:
        """Write the figure as HTML."""
        html: str = super().to_html(*args, **{"auto_play": False, "post_script": _QUIET} | more)
        return html

    def write_html(self, *args: Any, **more: Any) -> None:
        """Write the figure to an HTML file."""
        super().write_html(*args, **{"auto_play": False, "post_script": _QUIET} | more)


class _Drawing:
    """A view of a trace in a theme."""

    def __init__(
        self,
        trace: Trace,
        name: str,
        theme: str,
        check: Rescored | None,
        speedup: float | None = None,
        phase: StepPhase | None = None,
    ) -> None:
        if theme not in THEMES:
            raise ParamError(f"there is no theme {theme[:40]!r}: choose one of {', '.join(THEMES)}")
        if name not in VIEWS:
            raise ParamError(f"there is no view {name[:40]!r}: choose one of {', '.join(VIEWS)}")
        self.view, self._colours, self._check, self._phase = VIEWS[name], THEMES[theme], check, phase
        self._judged = phase in (None, "accept", "commit")
        if not self.view.shows(trace.header):
            raise ParamError(
                f"a run of {trace.header.method[:40]} has nothing to show here: choose another than {name}"
            )
        self._run = RunState.of(trace)
        self.last = len(self._run.steps) - 1
        if self.last < 0:
            raise ParamError("this trace holds no step: record a run first")
        tokens_per_step = metrics.compression_rate(metrics.written(self._run.steps))
        self._of_run = {
            "speedup": metrics.credible_speedup(speedup, tokens_per_step),
            "bandwidth": counters.bandwidth(self._run, trace.summary),
        }
        self._shown = {token: token_text.shown(words) for token, words in self._run.texts.items()}
        self._base = self.view.base(RunState(trace.header, dict(trace.texts)))
        self._legend = self._plain(notebook_legend.entries(self.view, self._base, self._run))

    def subtitle(self, k: int, node: int | None) -> list[str]:
        """Return lines on what a node sees, for the mask."""
        if node is None:
            return []
        if self.view.name not in ("pair", "mask"):
            raise ParamError(f'{self.view.name} shows no single node: choose "pair" or "mask"')
        last = len(self._run.steps[k].tokens) - 1
        if not 0 <= node <= last:
            raise ParamError(f"node must be between 0 and {last}, the last one of step {k}, not {node}")
        return textwrap.wrap(sentences(self._run, k)[node], _LINE) if self.view.name == "mask" else []

    def named(self, k: int, node: int | None) -> str:
        """Name a node by its number and its token."""
        return (
            ""
            if node is None
            else f", node {node} ({token_text.shown(self._run.text(self._run.steps[k].tokens[node]))})"
        )

    def picture(self, k: int, node: int | None = None) -> Figure:
        """Return the figure of step k, as plotly draws it; of "pair", that of a node."""
        drawn = self._view(k, node)
        return drawn | {"data": [*drawn["data"], *self._legend]}

    def _view(self, k: int, node: int | None) -> Figure:
        if self.view.kind == "text":
            drawn: Figure = self._plain(text.picture(self._run, k if self._judged else k - 1))
            return drawn
        if self.view.kind == "stage":
            scene = self._plain(self.view.frame(self._run, k), k)
            lossless = self._run.header.lossless
            return stage_picture(self._base, scene, self._colours, self._phase or "accept", lossless=lossless)
        if self.view.kind == "numbers":
            table: Figure = self._plain(_table(self._rows(k if self._judged else k - 1)))
            return table
        merged: Figure = self._plain({name: self._base[name] for name in ("data", "layout")})
        for step in range(k + self._judged) if self.view.grows else (k,):
            asked = node if self.view.name == "pair" else None
            if asked is None and self.view.name == "pair" and not self._judged:
                asked = min(1, len(self._run.steps[k].tokens) - 1)  # the one that matters is not known yet
            frame = self.view.frame(self._run, step) if asked is None else of_node(self._run, step, asked)
            patch = self._plain(frame, step)
            merge = _appended if self.view.grows else _overlaid
            for place, part in enumerate(patch.get("data", ())):
                merged["data"][place] = merge(merged["data"][place], part)
            merged["layout"] = _overlaid(merged["layout"], patch.get("layout", {}))
        for part, since in zip(merged["data"], self.view.phases, strict=False):
            if self._phase and not self.view.grows and STEP_PHASES.index(since) > STEP_PHASES.index(self._phase):
                part["visible"] = False
        fills = self._plain([meaning.colour for meaning in MEANINGS])
        return merged | {"data": [as_trace(part, fills) if "layer" in part else part for part in merged["data"]]}

    def framed(
        self, layout: Mapping[str, Any], step: str, subtitle: Sequence[str] = (), below: int = 0
    ) -> dict[str, Any]:
        """Return a layout with a title, lines below it, and room for a legend, which the page shows elsewhere."""
        words = f"{self._base.get('label', self.view.label)}, {label_of(self._run.header)[:40]}{step}"
        colours = {"paper_bgcolor": "$paper", "plot_bgcolor": "$paper", "font": {"color": "$text", "family": _FONT}}
        framed: dict[str, Any] = _overlaid(self._plain(colours), layout)
        corner = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "top", "pad": {"l": 12, "t": 14}}
        framed["title"] = {"text": token_text.escaped(words), "font": {"size": 15}, **corner}
        if subtitle:
            framed["title"]["subtitle"] = {"text": "<br>".join(map(token_text.escaped, subtitle)), "font": {"size": 12}}
        top, margin = _TITLE + _PITCH * len(subtitle), framed.get("margin", {})
        above = top + notebook_legend.height(self._legend)
        framed["margin"] = margin | {"t": margin.get("t", 8) + above, "b": margin.get("b", 8) + below}
        framed["height"] = framed.get("height", 450) + above + below
        return framed | notebook_legend.layout(self._legend, top, framed["height"], self._colours["text"])

    def _rows(self, k: int) -> list[tuple[str, str]]:
        """Return labels and values of a view of numbers."""
        if "rows" not in self._base:
            sentence = self._base["say"] if self._check is None else say_check(self._check, self._run.header)
            return [(self.view.label, sentence)]
        rows = counters.rows(self._run.header)
        values = self.view.frame(self._run, k)["values"] if k >= 0 else [None] * len(rows)
        values = [self._of_run.get(row.key, value) for row, value in zip(rows, values, strict=True)]
        return [(row.label, counters.value_with_unit(row, value)) for row, value in zip(rows, values, strict=True)]

    def _plain(self, value: encode.Encoded, k: int | None = None) -> encode.Encoded:
        """Return what plotly draws."""
        step = None if k is None else self._run.steps[k]
        return encode.resolve(value, self._shown, (), self._colours, step, judged=self._judged)


def _table(rows: list[tuple[str, str]]) -> Figure:
    look = {"align": "left", "line": {"color": "$line"}, "font": {"color": "$text", "family": _FONT, "size": 13}}
    cells = {"values": [list(column) for column in zip(*rows, strict=True)], "fill": {"color": "$paper"}, "height": 26}
    header = {"values": ["", ""], "fill": {"color": "$panel"}, "height": 8}
    table = {"type": "table", "columnwidth": [4, 5], "header": header | look, "cells": cells | look}
    return {"data": [table], "layout": {"height": 36 + 26 * len(rows), "margin": {"l": 8, "r": 8, "t": 8, "b": 8}}}


def _filled(parts: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """Pad shapes or annotations to `most`, so that none of another step's stays: plotly replaces them by number."""
    return [*(dict(part) | {"visible": True} for part in parts), *[{"visible": False}] * (most - len(parts))]


def _overlaid(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base with what a patch changes: objects merge, everything else is replaced."""
    merged = dict(base)
    for name, value in patch.items():
        old = merged.get(name)
        merged[name] = _overlaid(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _appended(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base with a step's points after those it has."""
    merged = dict(base)
    for name, value in patch.items():
        if isinstance(value, dict):
            merged[name] = _appended(merged.get(name, {}), value)
        else:
            merged[name] = [*merged.get(name, ()), *value] if isinstance(value, list) else value
    return merged


def _controls(steps: int, colours: Mapping[str, str], margin: int) -> dict[str, Any]:
    """Return a play button, a pause button and a slider, below what the figure has in its lower `margin`."""
    play = {"frame": {"duration": 500, "redraw": True}, "transition": {"duration": 0}, "fromcurrent": True}
    stand = {"frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}, "mode": "immediate"}
    buttons = [
        {"label": "Play", "method": "animate", "args": [None, play | {"mode": "immediate"}]},
        {"label": "Pause", "method": "animate", "args": [[None], stand]},
    ]
    look = {"bgcolor": colours["panel"], "bordercolor": colours["line"], "font": {"color": colours["text"]}}
    menu = {"type": "buttons", "direction": "left", "showactive": False, "buttons": buttons, **look}
    menu |= {"x": 0, "xanchor": "left", "y": 0, "yanchor": "top", "pad": {"t": margin + 22, "r": 8}}
    slider = {
        "steps": [{"label": str(k), "method": "animate", "args": [[str(k)], stand]} for k in range(steps)],
        "currentvalue": {"prefix": "Step "},
        "x": 0.16,
        "len": 0.84,
        "pad": {"t": margin + 4},
        **look,
    }
    return {"updatemenus": [menu], "sliders": [slider]}
