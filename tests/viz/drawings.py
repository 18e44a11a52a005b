"""Views as plain figures whose cells hold token ids instead of texts."""

from __future__ import annotations

from typing import Any

from decoding.types import Trace
from tests.viz.engines import FILLS
from viz.cells import as_trace
from viz.palette import LIGHT
from viz.run_state import RunState
from viz.stream.encode import resolve
from viz.view import View


def drawn(trace: Trace, view: View, k: int) -> dict[str, Any]:
    """The figure of a step, resolved; of a view that grows, of all steps up to it."""
    state = RunState.of(trace)
    figure: dict[str, Any] = resolve(view.base(state), {}, (), LIGHT, state.steps[k])
    for step in range(k + 1) if view.grows else (k,):
        patch = resolve(view.frame(state, step), {}, (), LIGHT, state.steps[k])
        for trace_, part in zip(figure["data"], patch.get("data", ()), strict=False):
            merge(trace_, part, append=view.grows)
        merge(figure["layout"], patch.get("layout", {}), append=False)
    return figure | {"data": [as_trace(part, FILLS) if "layer" in part else part for part in figure["data"]]}


def merge(base: dict[str, Any], patch: dict[str, Any], *, append: bool) -> None:
    """Put a patch over a figure, or after what it holds."""
    for name, value in patch.items():
        if isinstance(value, dict) and isinstance(base.get(name), dict):
            merge(base[name], value, append=append)
        else:
            base[name] = [*base.get(name, []), *value] if append else value


def cells(trace: dict[str, Any]) -> list[tuple[float, float, int]]:
    """Column, row and token of every point of a trace."""
    size = min(len(trace["x"]), len(trace["y"]))
    bases = trace.get("base")  # of bars, which are wide cells
    xs = trace["x"] if bases is None else [round(x + w / 2, 6) for x, w in zip(bases, trace["x"], strict=True)]
    points = zip(xs, trace["y"], trace.get("text", ())[:size], strict=False)
    return [(x, y, int(text[1:])) for x, y, text in points if text]


def fates(trace: dict[str, Any]) -> list[int]:
    """The fate codes of a trace's points."""
    colour = trace["marker"].get("color")
    return [int(code) for code in colour] if isinstance(colour, list) else []
