"""Runs whose trees several processes read: every view that says so, and none that does where there was one."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from decoding.types import Trace
from tests.viz.records import divided, record
from viz import figure, narration
from viz.methods import screen_of
from viz.palette import LIGHT
from viz.run_state import RunState
from viz.stream import encode
from viz.stream.play import Play
from viz.tree_layout import rows
from viz.views import VIEWS

COUNT = 3
RUNS = ("lookahead", "ngrammys", "rest", "jacobi", "autoregressive")
each = pytest.mark.parametrize("method", RUNS)


def trace_of(method: str) -> Trace:
    return divided(record(method), COUNT)


def drawn(view: str, trace: Trace, k: int) -> tuple[list[dict[str, object]], dict[str, object]]:
    """Return the parts of a figure that the ranks add, and its layout."""
    state = RunState.of(trace)
    patch = VIEWS[view].frame(state, k)
    plain = encode.resolve(patch, state.texts, (), LIGHT, trace.steps[k])
    return plain["data"][len(VIEWS[view].nodes) :], plain["layout"]


@each
def test_the_strip_has_a_column_for_each_rank(method: str) -> None:
    """A cell in the wrong column would blame the wrong process."""
    trace = trace_of(method)
    for k, step in enumerate(trace.steps):
        (strip,), layout = drawn("mask", trace, k)
        z = np.array(strip["z"])
        assert z.shape == (len(step.tokens), COUNT)
        for node, readers in enumerate(step.ranks):
            assert tuple(np.flatnonzero(z[node])) == readers and z[node].argmax() == readers[0]
        across = layout["xaxis"]
        first, each_wide = strip["x0"], strip["dx"]
        assert first - each_wide / 2 >= len(step.tokens) - 0.5  # the mask itself ends before
        assert first + each_wide * (COUNT - 0.5) <= across["range"][1]
        assert across["ticktext"][-1] == "ranks 0-2"


@each
def test_bands_divide_the_trees_rows(method: str) -> None:
    """Every row of the tree lies in the band of the rank whose choice counts at its end."""
    trace = trace_of(method)
    state = RunState.of(trace)
    if not VIEWS["tree"].shows(trace.header):
        assert not screen_of(trace.header).guesses
        return
    for k, step in enumerate(trace.steps):
        (areas, names), _ = drawn("tree", trace, k)
        spans = [(y - wide / 2, y + wide / 2) for y, wide in zip(areas["y"], areas["width"], strict=True)]
        assert all(low[1] < high[0] for low, high in pairwise(spans))
        last = {row: node for node, row in enumerate(rows(state.steps[k])) if row is not None}
        for row, node in last.items():
            (band,) = [i for i, (low, high) in enumerate(spans) if low < row < high]
            assert names["text"][band] == f"rank {step.ranks[node][0]}"


@each
def test_plotly_takes_the_figures(method: str) -> None:
    """In a notebook as well."""
    trace = trace_of(method)
    for view in ("mask", "tree", "cache", "counters"):
        if VIEWS[view].shows(trace.header):
            base = VIEWS[view].base(RunState(trace.header))
            nodes, phases = (base.get(name, getattr(VIEWS[view], name)) for name in ("nodes", "phases"))
            assert view == "counters" or len(base["data"]) == len(nodes) == len(phases)
            figure(trace, view, step=len(trace.steps) - 1)


@each
def test_the_sentence_counts_rows_and_bytes(method: str) -> None:
    """The numbers of the record in words."""
    trace = trace_of(method)
    for k, step in enumerate(trace.steps):
        words = narration.say(RunState.of(trace), k)
        read = [sum(rank in readers for readers in step.ranks) for rank in range(COUNT)]
        sentence = (
            f"The 3 ranks read {read[0]}, {read[1]} and {read[2]} of the tree's rows, and exchanged {40 + k} bytes."
        )
        assert sentence in words
        assert "at most" in narration.say(RunState.of(divided(trace, 12)), k)


def test_the_counters_have_the_mean_of_the_bytes() -> None:
    """Added up from step to step, divided by the steps so far."""
    trace = trace_of("lookahead")
    state = RunState.of(trace)
    keys = [row["key"] for row in VIEWS["counters"].base(state)["rows"]]
    for k in range(len(trace.steps)):
        values = VIEWS["counters"].frame(state, k)["values"]
        assert values[keys.index("exchanged")] == pytest.approx(40 + k / 2, rel=1e-4)


@each
def test_the_tables_have_a_column_for_ranks(method: str) -> None:
    """The page knows it by the view's line; tests/browser/test_player_ranks.py reads what is in it."""
    trace = trace_of(method)
    play = Play(trace.header)
    begin = [json.loads(line) for line in play.begin(trace.texts).splitlines()]
    (head,) = [line for line in begin if line["kind"] == "play"]
    assert head["header"]["ranks"] == COUNT
    columns = {view["name"]: view["columns"] for view in head["views"]}
    assert ["Ranks that read it", "readers"] in columns["mask"]
    assert {view["label"] for view in head["views"]} >= {"Cache slots of rank 0"}


@each
def test_one_process_is_not_spoken_of(method: str) -> None:
    """Nobody asks for ranks where there are none."""
    trace = record(method)
    whole = Play(trace.header).begin(trace.texts)
    assert "readers" not in whole and "of rank 0" not in whole
    assert "ranks" not in narration.say(RunState.of(trace), len(trace.steps) - 1)
