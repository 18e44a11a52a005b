"""The tokens of every step, and below them where its time went. It grows by one point of every trace per step.

The first step reads the prompt, which takes time of another kind, so it is described in words.
"""

from __future__ import annotations

from decoding.types import Step

from ..cells import LETTERS, PlotTrace, StepPhase, axis, labels, layout, points
from ..fates import emitted_fates
from ..palette import MEANINGS, TIME_LOOKS, Fate
from ..run_state import RunState
from ..view import Figure, Patch, View

_WRITTEN = (
    (Fate.ACCEPTED, "$accepted", ""),
    (Fate.CORRECTION, "$correction", "."),
    (Fate.BONUS, "$bonus", "-"),
    (Fate.OWN, "$own", "|"),
)
_PREFILL = len(_WRITTEN) + 1 + len(TIME_LOOKS)  # trace
_FROM: StepPhase = "accept"
_TOP, _SPLIT = 0.92, 0.48  # of the figure's height: the upper half's top, and where the lower half ends


def base(run: RunState) -> Figure:
    """Return the figure without a step: tokens above, times below."""
    data: list[PlotTrace] = []
    for fate, colour, pattern in _WRITTEN:
        drawn = {"shape": pattern, "size": 5, "fillmode": "overlay", "fgcolor": "$paper", "fgopacity": 0.9}
        look = {"color": colour, "line": {"width": 0}, "pattern": drawn}
        data.append({"type": "bar", "y": [], "marker": look, "hoverinfo": "none", "name": MEANINGS[fate].label})
    ticks_of_rejection = {
        "symbol": "x-thin",
        "size": 5,
        "color": "$rejected",
        "line": {"width": 1.5, "color": "$rejected"},
    }
    data.append(_without_x(points("markers", marker=ticks_of_rejection)) | _listed("A guess was rejected", "legend"))
    # A step's time reaches back from its point, so that the last one is as wide as all others.
    ends: PlotTrace = {"x0": 0.5, "line": {"width": 0, "shape": "vh"}}
    for phase in TIME_LOOKS.values():
        area = points("lines", stackgroup="time", yaxis="y2", fillcolor=phase.colour, **ends)
        filled = {"shape": phase.pattern, "size": 6, "fgcolor": "$text", "bgcolor": phase.colour, "fgopacity": 0.5}
        data.append(_without_x(area) | {"fillpattern": filled, "hoverinfo": "none", **_listed(phase.label, "legend2")})
    data.append(labels("right") | {"yaxis": "y3"})
    grid: PlotTrace = {
        "showgrid": True,
        "gridcolor": "$faint",
        "showticklabels": True,
        "autorange": True,
        "range": None,
    }
    tokens = axis(
        0, 1, **grid, domain=[_SPLIT + 0.06, _TOP], autorangeoptions={"include": [-0.6, 5]}, nticks=6, tickformat="d"
    )
    times = axis(0, 1, **grid, domain=[0.0, _SPLIT - 0.05], autorangeoptions={"include": 0}, ticksuffix=" ms")
    words = axis(0, 1, domain=[_SPLIT + 0.005, _SPLIT + 0.04])
    steps = axis(0, 1, **grid | {"showgrid": False}, autorangeoptions={"include": [-0.6, 19.5]}, tickformat="d")
    baseline = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "layer": "above"}
    shapes = [baseline | {"line": {"color": "$text", "width": 1, "dash": "dash"}}]
    more: PlotTrace = {"yaxis2": times, "yaxis3": words, "barmode": "stack", "bargap": 0.15, "shapes": shapes}
    more |= {"showlegend": True, "legend": _legend(_TOP, "bottom"), "legend2": _legend(-0.12, "top")}
    margin = {"l": 52, "r": 8, "t": 4, "b": 68, "pad": 2}
    figure = layout(360, steps | {"anchor": "y2"}, tokens, margin=margin, **more)
    return {"data": data, "layout": figure, "table": {"kind": "steps"}}


def frame(run: RunState, k: int) -> Patch:
    """Return the points of step k."""
    step = run.steps[k]
    fates, timing = emitted_fates(step), step.timing
    data: list[PlotTrace] = [{"y": [sum(fate is kind for fate in fates)]} for kind, _, _ in _WRITTEN]
    data.append({"y": [-0.35 if rejected(step) else None]})
    for phase in TIME_LOOKS:
        data.append({"y": [round(getattr(timing, f"{phase}_ms"), 3) if k else None]})
    if k == 0:
        what = "prompt and guesses" if step.fed > step.pending + 1 else "prompt"
        words = f"{what}: {step.fed:,} tokens read in {timing.total_ms:,.0f} ms"
        data.append({"x": [-0.5], "y": [0.5], "text": {"strings": [words]}})
    return {"data": data}


def rejected(step: Step) -> bool:
    """Return True if the target chose against a guess, rather than running out of them."""
    return Fate.CORRECTION in emitted_fates(step)


def _without_x(trace: PlotTrace) -> PlotTrace:
    """Return one point a step: the place in the row is the step's number."""
    return {name: value for name, value in trace.items() if name != "x"}


def _listed(name: str, legend: str) -> PlotTrace:
    """Return a trace with an entry in the legend."""
    return {"showlegend": True, "name": name, "legend": legend}


def _legend(y: float, anchor: str) -> PlotTrace:
    """Return a legend that does nothing when it is clicked."""
    place = {"orientation": "h", "x": 0, "y": y, "xanchor": "left", "yanchor": anchor, "bgcolor": "rgba(0,0,0,0)"}
    return place | {
        "traceorder": "normal",
        "itemclick": False,
        "itemdoubleclick": False,
        "font": {"size": LETTERS, "color": "$muted"},
    }


VIEW = View(
    name="timeline",
    label="Timeline",
    kind="plot",
    look_for="Tall bars are passes that paid off. The dashed line is one token per pass, as without speculation.",
    base=base,
    frame=frame,
    grows=True,
    nodes=(None,) * (_PREFILL + 1),
    phases=(_FROM,) * (_PREFILL + 1),
)
