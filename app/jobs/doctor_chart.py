"""The chart of an examination: how many steps accept a guess at each position, as given and mended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from viz.palette import THEMES
from viz.stream.encode import resolve

if TYPE_CHECKING:
    from analysis.doctor.examine import ExaminationReport
    from analysis.doctor.measure import AcceptedGuesses

_FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 12, "color": "$text"}
_STILL = {"itemclick": False, "itemdoubleclick": False}
GIVEN, MENDED = "as given", "mended"


def figures(report: ExaminationReport) -> dict[str, Any]:
    """Draw the figure in the colours of each theme; empty if nothing could be measured."""
    if report.given is None or report.best is None:
        return {}
    mended = report.best is not report.given
    given = ("$rejected", "circle", "dot") if mended else ("$accepted", "square", "solid")
    curves = [_curve(GIVEN, report.given, *given)]
    if mended:
        curves.append(_curve(MENDED, report.best, "$accepted", "square", "solid"))
    figure = {"data": curves, "layout": _layout(len(report.given.survival))}
    return {name: resolve(figure, {}, (), colours) for name, colours in THEMES.items()}


def _curve(name: str, measured: AcceptedGuesses, colour: str, sign: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"{name}: {measured.tokens_per_step:.2f} tokens per step",
        "x": [*range(1, len(measured.survival) + 1)],
        "y": [round(100 * share, 1) for share in measured.survival],
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"color": colour, "size": 9, "symbol": sign},
        "hovertemplate": "guess %{x}: %{y:.0f} %<extra></extra>",
    }


def _layout(depth: int) -> dict[str, Any]:
    axis = {"gridcolor": "$faint", "linecolor": "$line", "zeroline": False, "fixedrange": True, "color": "$muted"}
    return {
        "height": 280,
        "margin": {"l": 48, "r": 12, "t": 48, "b": 40},
        "paper_bgcolor": "$paper",
        "plot_bgcolor": "$paper",
        "font": _FONT,
        "showlegend": True,
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,  # below the chart a narrow one's two lines would cover the axis's title
            "yanchor": "bottom",
            **_STILL,
        },
        "xaxis": {**axis, "title": {"text": "guess of the step"}, "dtick": 1, "range": [0.7, depth + 0.3]},
        "yaxis": {**axis, "title": {"text": "steps that accept it, %"}, "range": [-4, 104], "dtick": 25},
        "hoverlabel": {"bgcolor": "$panel", "bordercolor": "$line", "font": {"color": "$text"}},
        "dragmode": False,
    }
