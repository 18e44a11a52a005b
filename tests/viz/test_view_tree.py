"""The tree that is drawn against the record: its edges, its nodes, the path, and the target's own token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding import tree as trees
from decoding.types import Role, Step
from tests.viz import drawings
from tests.viz.engines import RUNS, drawn, plain, run_state
from tests.viz.records import HOSTILE, record
from viz import tree_layout
from viz.fates import emitted_fates, node_fates
from viz.methods.ouroboros import inspired
from viz.palette import MEANINGS
from viz.run_state import RunState
from viz.views import tree
from viz.views.tree import weights

ZoneCell = tuple[float, float]
TREES = [(family, method) for family, method in RUNS if method != "autoregressive"]


def lines(trace: Any) -> Iterator[tuple[ZoneCell, ZoneCell]]:
    """The lines from point to point of a trace."""
    for (x, y), (to_x, to_y) in pairwise(zip(trace["x"], trace["y"], strict=True)):
        if None not in (x, y, to_x, to_y):
            yield (x, y), (to_x, to_y)


def places(traces: list[dict[str, Any]]) -> dict[ZoneCell, int]:
    """The node at every place."""
    return {
        (x, y): node
        for trace, kind in zip(traces, tree.VIEW.nodes, strict=True)
        if kind == "points"
        for x, y, node in zip(trace["x"], trace["y"], trace.get("customdata", ()), strict=True)
        if y is not None
    }


def steps(family: str, method: str) -> Iterator[tuple[RunState, int, Step]]:
    state = run_state(family, method)
    for k, step in enumerate(state.steps):
        yield state, k, step


@pytest.mark.parametrize(("family", "method"), TREES)
def test_edges_are_the_parents(family: str, method: str) -> None:
    for got, k, step in steps(family, method):
        traces = drawn(got, k, tree)
        positions = places(traces)
        wanted = {node for node, role in enumerate(step.roles) if role is not Role.EXPLORE}
        assert set(positions.values()) == wanted and len(positions) == len(wanted), (
            "two nodes at one place, or one missing"
        )
        edges = {(positions[above], positions[below]) for above, below in lines(traces[0])}
        assert edges == {(step.parents[node], node) for node in wanted if node}
        for likely in traces[1:3]:
            assert {(positions[above], positions[below]) for above, below in lines(likely)} <= edges
        assert all(x == trees.depths(step.parents)[node] for (x, _), node in positions.items())


def test_a_changed_parent_is_another_picture() -> None:
    state = run_state("llama", "medusa")
    k = next(k for k, step in enumerate(state.steps) if len(step.tokens) > 20)
    step = state.steps[k]
    node = next(node for node in range(len(step.tokens) - 1, 0, -1) if step.parents[node] > 0)
    moved = replace(step, parents=(*step.parents[:node], 0, *step.parents[node + 1 :]))
    changed = RunState(state.header, state.texts, [*state.steps[:k], moved], state.ids)
    assert drawn(changed, k, tree)[0] != drawn(state, k, tree)[0]


@pytest.mark.parametrize(("family", "method"), TREES)
def test_the_thick_line_is_the_accepted_path_and_ends_at_the_targets_token(family: str, method: str) -> None:
    for got, k, step in steps(family, method):
        traces = drawn(got, k, tree)
        positions = places(traces)
        taken, chosen = traces[3], traces[4]
        path = [positions[place] for place in zip(taken["x"], taken["y"], strict=True)]
        assert path == (list(step.path) if len(step.path) > 1 else [])
        if len(step.emitted) == step.accepted:
            assert not chosen["x"]
            continue
        (above, below), meaning = next(lines(chosen)), MEANINGS[emitted_fates(step)[-1]]
        assert positions[above] == step.path[-1] and below not in positions
        assert chosen["text"] == ["", got.text(step.emitted[-1])]
        assert chosen["marker"]["symbol"] == meaning.symbol
        assert below[0] == above[0] + 1


@pytest.mark.parametrize(("family", "method"), TREES)
def test_colours_and_signs_are_the_fates(family: str, method: str) -> None:
    for got, k, step in steps(family, method):
        guesses = drawn(got, k, tree)[6]
        fates = node_fates(step)
        for place, node in enumerate(guesses.get("customdata", ())):
            if guesses["y"][place] is not None:
                assert guesses["marker"]["color"][place] == fates[node]
                assert guesses["marker"]["symbol"][place] == MEANINGS[fates[node]].symbol
                assert not guesses.get("text") or guesses["text"][place] == got.text(step.tokens[node])[:12]


def test_the_layout_does_not_betray_the_verdict() -> None:
    """What is seen before the target has judged is the same, whatever it will say."""
    state = run_state("llama", "ngrammys")
    k = next(k for k, step in enumerate(state.steps) if step.accepted)
    step = state.steps[k]
    other = replace(step, path=(0,), accepted=0, emitted=step.emitted[:1], choices=(0,) * len(step.tokens))
    changed = RunState(state.header, state.texts, [*state.steps[:k], other], state.ids)
    now, then = tree.frame(state, k), tree.frame(changed, k)
    assert now["layout"] == then["layout"] and now["data"] != then["data"]
    for phase, before, after in zip(tree.VIEW.phases, now["data"], then["data"], strict=True):
        assert phase == "accept" or before == after


@given(st.lists(st.integers(0, 30), max_size=40))
def test_first_children_go_straight_on(links: list[int]) -> None:
    """Every tree: no two nodes at one place, and a first child is in its parent's row."""
    parents = (-1, *(min(link, node) for node, link in enumerate(links)))
    step = replace(
        run_state("llama", "jacobi").steps[0],
        tokens=(1,) * len(parents),
        parents=parents,
        roles=(Role.ROOT, *(Role.VERIFY,) * len(links)),
    )
    rows, depths = tree_layout.rows(step), trees.depths(parents)
    assert len(set(zip(rows, depths, strict=True))) == len(parents)
    for node in range(len(parents)):
        children = [child for child, parent in enumerate(parents) if parent == node]
        assert not children or rows[children[0]] == rows[node]
    leaves = len(set(range(len(parents))) - set(parents))
    assert sorted(set(rows)) == list(range(leaves))  # type: ignore[type-var]


def test_what_the_methods_say_of_their_guesses() -> None:
    """Probabilities and counts become weights, and ranks where there are none; without any an edge is thin."""
    for method in ("draft_model", "kangaroo", "medusa", "ngrammys", "lookahead"):
        state = run_state("llama", method)
        k = next(k for k, step in enumerate(state.steps) if step.drafted > 1)
        step = state.steps[k]
        guesses = [node for node, role in enumerate(step.roles) if role is Role.VERIFY]
        likely = weights(state.header, step, guesses)
        if method in ("medusa", "ngrammys"):
            best = [n for n in guesses if step.sources[n].endswith((",0", "bigram:0"))]
            assert best and all(likely[node] == max(likely.values()) for node in best)
        if method == "lookahead":
            assert not likely
    state = run_state("llama", "ngrammys")
    for step in state.steps:
        likely = weights(state.header, step, range(1, len(step.tokens)))
        probabilities = {row["rank"]: row["p"] for row in step.panel["rows"] if row["strategy"] == "bigram"}
        for node, weight in likely.items():
            assert weight == probabilities[int(step.sources[node].removeprefix("bigram:"))]
        bare = replace(step, panel={})
        assert not weights(state.header, bare, range(1, len(step.tokens)))
    state = run_state("llama", "draft_model")
    step = replace(state.steps[1], q=(None, *[0.25] * (len(state.steps[1].tokens) - 1)))
    assert set(weights(state.header, step, range(1, len(step.tokens))).values()) == {0.25}


def test_thick_edges_of_ranks_are_not_called_probabilities() -> None:
    """A head's first guess is drawn thick, however unsure the head is: the figure must say so."""
    for method, said in (("medusa", True), ("ngrammys", True), ("draft_model", False)):
        assert ("nly the rank" in tree.base(run_state("llama", method)).get("look_for", "")) == said


def test_a_spark_marks_what_an_earlier_verdict_inspired() -> None:
    """A suffix that the panel of an earlier step tells of; one that came from the window has none."""
    got, k = RunState.of(record("ouroboros")), 2
    assert inspired(got, 1) == {5, 6, 7}, "the recorded run refined this phrase in its first step"
    step = got.steps[k]
    first = step.sources.index("pool:0,0")
    key, phrase = step.tokens[step.parents[first]], step.panel["suffixes"][0]
    bare = [replace(s, panel={**s.panel, "inspired": [], "refined": []}) for s in got.steps]
    without = RunState(got.header, got.texts, bare, got.ids)
    assert inspired(without, k) == set() and not drawn(without, k, tree)[7]["x"]
    bare[k - 1] = replace(bare[k - 1], panel={**bare[k - 1].panel, "inspired": [[key, phrase, "added"]]})
    after = RunState(got.header, got.texts, bare, got.ids)
    marked = inspired(after, k)
    assert first in marked and {step.sources[node].split(",")[0] for node in marked} == {"pool:0"}
    sparks, known = drawn(after, k, tree)[7], places(drawn(after, k, tree))
    assert {known[place] for place in zip(sparks["x"], sparks["y"], strict=True)} == marked


def test_hostile_texts_and_panels_do_no_harm() -> None:
    """A file from elsewhere may hold anything in its panel; texts never become tags."""
    for method in ("kangaroo", "ouroboros", "rest", "ngrammys"):
        state = run_state("llama", method)
        for junk in (None, 7, "x", [[]], [{"a": None}], {"a": 1}, [[1, [2], 3]], [10**40]):
            names = ("confidence", "eta", "suffixes", "refined", "inspired", "read", "rows")
            bad = [replace(step, panel=dict.fromkeys(names, junk)) for step in state.steps]
            strange = RunState(state.header, dict.fromkeys(state.texts, HOSTILE[0]), bad, state.ids)
            patches = [plain(tree.frame(strange, k), strange, step) for k, step in enumerate(bad)]
            assert "<" not in json.dumps(patches)


def test_no_depth_is_named_that_no_guess_has() -> None:
    """A "head 5" stood below the target's own token behind the last of four heads."""
    trace = record("medusa")
    for step in trace.steps:
        axis = drawings.drawn(trace, tree.VIEW, step.index)["layout"]["xaxis"]
        deepest = max(4, *trees.depths(step.parents))
        assert axis["ticktext"] == ["root", *(f"head {depth}" for depth in range(1, deepest + 1))]
