"""What holds for window, pool, pair and timeline alike."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from decoding.types import Trace
from tests.toys import counted_text, engine
from viz.cells import as_trace
from viz.palette import MEANINGS, THEMES
from viz.run_state import RunState
from viz.stream.encode import resolve
from viz.stream.play import Strings
from viz.views import pair, pool, timeline, window

from .drawings import drawn, merge
from .records import METHODS, changed, record

VIEWS = [window.VIEW, pool.VIEW, pair.VIEW, timeline.VIEW]
SHOWN = [(view, method) for view in VIEWS for method in METHODS if view.shows(record(method).header)]
EVERY = pytest.mark.parametrize(("view", "method"), SHOWN, ids=[f"{view.name}-{method}" for view, method in SHOWN])
JUNK: tuple[Any, ...] = (
    None, True, 7, -1, 2**40, 1e300, "x" * 10_000, "<b>${x}</b>", [], {}, [None], [[]], [[None, "a"]], [[1, 2], 3],
    [[2**40]], [[-1, 2]], [[1, [2], "added"]], [[1, [2], ["added"]]], {"inserted": 3, "entries": "many"}, [{}],
    [{"tokens": [1, "a"], "strategy": 4, "count": []}], [True, False], [0.5, "nan", None], [[0] * 5000] * 300,
)  # fmt: skip


@EVERY
def test_a_frame_looks_at_no_later_step(view: Any, method: str) -> None:
    """So a frame is the same while the run goes on and when it is read from a file."""
    trace = record(method)
    whole = RunState.of(trace)
    state = RunState(trace.header, trace.texts)
    for step in trace.steps:
        state.add(step)
        assert view.frame(state, step.index) == view.frame(whole, step.index)


@EVERY
def test_plotly_takes_the_figure(view: Any, method: str) -> None:
    """In both themes, with every attribute known to it; traces, nodes and phases are as many."""
    trace = record(method)
    state, last = RunState.of(trace), len(trace.steps) - 1
    assert view.base(state) == view.base(RunState(trace.header))  # it is sent before the first step
    base = view.base(state)
    assert len(base["data"]) == len(view.nodes) == len(view.phases)
    for theme in THEMES.values():
        figure = resolve({"data": base["data"], "layout": base["layout"]}, {}, (), theme)
        patch = resolve(view.frame(state, last), {}, (), theme, trace.steps[last])
        for own, part in zip(figure["data"], patch["data"], strict=False):
            merge(own, part, append=view.grows)
        fills = resolve([meaning.colour for meaning in MEANINGS], {}, (), theme)
        figure["data"] = [as_trace(part, fills) if "layer" in part else part for part in figure["data"]]
        assert len(go.Figure(figure).data) == len(view.nodes)
    assert "$" not in json.dumps(drawn(trace, view, last)).replace("$accepted", "")


@pytest.mark.sampled
@pytest.mark.parametrize(("view", "method"), [case for case in SHOWN if case[0].name in ("window", "pool")])
def test_a_hostile_panel_does_no_harm(view: Any, method: str) -> None:
    """A dropped file may hold anything in its panels: the figure stays small and is still one that plotly takes."""
    trace = record(method)
    k = len(trace.steps) // 2
    recorded = trace.steps[k].panel
    names = {*recorded, "stopped", "confidence", "hits", "passes", "suffixes", "n"} - {"pool"}
    for junk in JUNK:
        params = {**trace.header.params, "W": junk, "N": junk, "G": junk, "n": junk, "eta": junk}
        for panel in ({}, dict.fromkeys(names, junk), {**recorded, **dict.fromkeys(sorted(recorded)[:2], junk)}):
            odd = changed(trace, k, panel={**panel, "pool": {"entries": junk, "keys": junk, "inserted": junk}})
            for state in (RunState.of(odd), RunState.of(replace(odd, header=replace(odd.header, params=params)))):
                assert len(json.dumps(Strings().replace(view.frame(state, k)))) < 40_000
                assert "<b>" not in json.dumps([view.base(state), view.frame(state, k)])
        if isinstance(junk, list) and len(junk) < 3:
            go.Figure({"data": drawn(odd, view, k)["data"]})


def lookahead() -> Trace:
    """Make a run of the size that the stream is measured by."""
    options: dict[str, Any] = {"record": "full", "max_new_tokens": 60, "params": {"W": 15, "N": 5, "G": 15}}
    return engine(counted_text()).generate([1, 2, 3, 4, 5, 1, 2, 3], "lookahead", **options).trace


def test_patches_are_small() -> None:
    """A run of 200 steps must fit into one megabyte with all its views."""
    state = RunState.of(lookahead())
    for view, most in zip(VIEWS, (1000, 1000, 400, 200), strict=True):
        strings = Strings()
        sizes = [
            len(json.dumps(strings.replace(view.frame(state, step.index)), separators=(",", ":"))) + len(strings.line())
            for step in state.steps
        ]
        assert sum(sizes) / len(sizes) < most, view.name


def test_a_record_without_nodes_still_has_its_times() -> None:
    """A run recorded with "off" tells only how much it wrote and how long it took."""
    trace = engine(counted_text()).generate([1, 2, 3], "lookahead", record="off", max_new_tokens=12).trace
    assert [view.name for view in VIEWS if view.shows(trace.header)] == ["timeline"]
    data = drawn(trace, timeline.VIEW, len(trace.steps) - 1)["data"]
    assert sum(sum(data[part]["y"]) for part in range(4)) == 12
