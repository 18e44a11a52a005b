"""Whatever a view draws is explained: as a token's fate in the legend, or in the view's own key."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import pytest

from tests.viz.engines import RUNS, plain, run_state
from viz.fates import emitted_fates, node_fates
from viz.palette import FATE_SCALE, LIGHT, MEANINGS, Fate
from viz.run_state import RunState
from viz.views import VIEWS, cache

from .records import METHODS, record

COLOURS = {meaning.colour: meaning.fate for meaning in MEANINGS}
OWN_LEGEND = ("timeline", "pair")  # whose figures name their colours themselves


def marked(part: dict[str, Any], trace: dict[str, Any]) -> set[Fate]:
    """The fates that the points of a part are drawn as; `trace` is the same without names of colours in it."""
    look = part.get("marker", {})
    if not all(len(trace[side]) for side in "xyz" if side in trace):
        return set()
    if trace.get("type") == "heatmap":
        return {Fate(int(code) - 1) for row in trace["z"] for code in row if 0 < code <= len(MEANINGS)}
    if "fate" in part or look.get("colorscale") == FATE_SCALE:
        return {Fate(int(code)) for code in (trace["fate"] if "fate" in part else trace["marker"]["color"])}
    colour = part.get("colour", look.get("color"))
    return {COLOURS[colour]} if colour in COLOURS else set()


def told_by_nodes(state: RunState) -> set[Fate]:
    """What the legend has anyway."""
    everywhere = {Fate.PROMPT, Fate.ROOT, Fate.PROPOSED}
    return everywhere.union(*(node_fates(step) for step in state.steps), *map(emitted_fates, state.steps))


def unexplained(state: RunState, name: str) -> set[Fate]:
    """The fates that a view draws in any step and the legend does not hold while it is open."""
    base, symbols = VIEWS[name].base(state), set[Fate]()
    for k, step in enumerate(state.steps):
        patch = VIEWS[name].frame(state, k).get("data", ())
        for before, after in zip_longest(base["data"], patch, fillvalue={}):
            whole = {**before, **after}
            if "marker" in before:
                whole["marker"] = {**before["marker"], **after.get("marker", {})}
            symbols |= marked(whole, plain(whole, state, step))
    return symbols - told_by_nodes(state) - set(base.get("draws", ()))


def views(state: RunState) -> list[str]:
    plots = [name for name, view in VIEWS.items() if view.kind == "plot" and view.shows(state.header)]
    return [name for name in plots if name not in OWN_LEGEND]


@pytest.mark.sampled
@pytest.mark.parametrize(("family", "method"), RUNS)
def test_every_fate_that_a_view_draws_is_in_the_legend(family: str, method: str) -> None:
    state = run_state(family, method)
    assert {name: unexplained(state, name) for name in views(state)} == {name: set() for name in views(state)}


@pytest.mark.parametrize("method", METHODS)
def test_every_fate_of_a_recorded_run_is_in_the_legend(method: str) -> None:
    state = RunState.of(record(method))
    assert {name: unexplained(state, name) for name in views(state)} == {name: set() for name in views(state)}


def test_every_bar_of_the_cache_is_explained() -> None:
    """Grey and striped bars are no fates: the view's own key tells what they are."""
    base = cache.base(run_state("mistral", "lookahead"))
    slots = base["data"][1:]  # behind the empty ones
    bars = [part["marker"] for part in slots if part.get("type") == "bar"]
    looks = {(look["color"], look.get("pattern", {}).get("shape", "")) for look in bars if look["color"] not in COLOURS}
    assert looks == {(item["colour"], item.get("hatch", "")) for item in base["key"]}
    assert all(item["words"] and item["colour"][1:] in LIGHT for item in base["key"])


def test_the_mask_explains_its_stripes_where_it_has_them() -> None:
    for family, sliding in (("mistral", True), ("llama", False)):
        words = " ".join(item["words"] for item in VIEWS["mask"].base(run_state(family, "jacobi"))["key"])
        assert ("sliding window" in words) == sliding
