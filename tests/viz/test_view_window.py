"""The window's figure: every cell lies where its node is, and every diagonal is the n-gram that was harvested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from decoding.tree import depths
from decoding.types import Role, Step, Trace
from tests.toys import SETTINGS, counted_text, engine, title
from viz.boards.board import OUTCOMES
from viz.boards.window import ANSWERS, CURRENT, DIAGONALS, FRONT, LEARNED, PARTS, PAST, ROOT, SETTLED
from viz.cells import SYMBOLS
from viz.fates import node_fates
from viz.palette import Fate
from viz.run_state import RunState
from viz.views.window import VIEW

from .drawings import cells, drawn, fates
from .records import changed, record


def run(method: str, params: dict[str, Any], **options: Any) -> Trace:
    """Make a run on a text that repeats itself, so that guesses come true."""
    made = engine(counted_text()).generate(
        [1, 2, 3, 4, 5, 1, 2, 3], method, params=params, max_new_tokens=40, **options
    )
    return made.trace


LOOKAHEAD = pytest.mark.parametrize("params", SETTINGS["lookahead"], ids=title)
JACOBI = pytest.mark.parametrize("params", SETTINGS["jacobi"], ids=title)


def explored(step: Step) -> dict[int, tuple[int, int]]:
    """Return row and column of every window cell, by its node."""
    places = (source.removeprefix("window:").split(",") for source in step.sources)
    return {
        node: (int(place[0]), int(place[1]))
        for node, place in enumerate(places)
        if step.roles[node] is Role.EXPLORE and len(place) == 2
    }


@LOOKAHEAD
def test_every_cell_lies_where_its_node_is(params: dict[str, Any]) -> None:
    """A window drawn a column off would teach a wrong mask."""
    trace = run("lookahead", params)
    for step in trace.steps:
        depth, nodes = depths(step.parents), explored(step)
        top = params["N"] - 2 - max(row for row, _ in nodes.values())
        data = drawn(trace, VIEW, step.index)["data"]
        expected = [(depth[node], top + row, step.tokens[node]) for node, (row, _) in nodes.items()]
        assert sorted(cells(data[PAST])) == sorted(expected)
        assert [step.tokens[node] for node in data[PAST]["customdata"][: len(nodes)]] == [
            token for *_, token in cells(data[PAST])
        ]
        assert cells(data[ROOT]) == [(0, top, step.tokens[0])]
        answers = list(zip(cells(data[ANSWERS]), data[ANSWERS]["customdata"], strict=False))
        assert [token for (_, _, token), _ in answers] == step.panel["new"]
        for (x, y, token), node in answers:
            assert (x, y, token) == (depth[node] + 1, params["N"] - 1, step.choices[node])


@LOOKAHEAD
def test_a_diagonal_is_the_n_gram_that_was_harvested(params: dict[str, Any]) -> None:
    """The line through the cells says which n-gram went into the pool, and the mark what the pool did with it."""
    trace, harvested = run("lookahead", params), 0
    W, N = params["W"], params["N"]
    for step in trace.steps:
        data = drawn(trace, VIEW, step.index)["data"]
        if step.panel["phase"] != "steady":
            assert data[DIAGONALS]["x"] == [] and data[LEARNED]["x"] == []
            continue
        where = {(x, y): token for part in (PAST, ANSWERS, ROOT) for x, y, token in cells(data[part])}
        points = list(zip(data[DIAGONALS]["x"], data[DIAGONALS]["y"], strict=True))
        size = N + 2  # cells, the mark, and the gap
        lines = [points[i * size : (i + 1) * size] for i in range(W)]
        events = step.panel["pool"]["inserted"][:W]
        for line, symbol, (key, ngram, outcome) in zip(lines, data[LEARNED]["marker"]["symbol"], events, strict=True):
            assert [where[point] for point in line[:N]] == [key, *ngram]
            assert symbol == SYMBOLS[OUTCOMES[outcome]]
            harvested += 1
    assert harvested > W


@LOOKAHEAD
def test_the_guesses_beside_it_are_the_steps_own(params: dict[str, Any]) -> None:
    """Each at its depth, with its fate; the one that was accepted is among them."""
    trace, accepted = run("lookahead", params), 0
    for step in trace.steps:
        data, depth = drawn(trace, VIEW, step.index)["data"], depths(step.parents)
        size = len(data[CURRENT]["x"])
        nodes = data[CURRENT].get("customdata", [])[:size]
        assert [(x, token) for x, _, token in cells(data[CURRENT])] == [(depth[n], step.tokens[n]) for n in nodes]
        assert fates(data[CURRENT]) == [int(node_fates(step)[node]) for node in nodes]
        assert set(step.path[1:]) <= set(nodes)
        accepted += step.accepted
    assert accepted > 0


@JACOBI
def test_iterations_lie_at_their_places(params: dict[str, Any]) -> None:
    """Rows are passes, columns places of the text; the line is where the settled text ended before each pass."""
    trace, settled = run("jacobi", params), 0
    for step in trace.steps:
        figure = drawn(trace, VIEW, step.index)
        data, (left, right) = figure["data"], figure["layout"]["xaxis"]["range"]
        block = [(step.start + j, 0, token) for j, token in enumerate(step.tokens[1:])]
        assert cells(data[CURRENT]) == [cell for cell in block if cell[0] > left]
        assert fates(data[CURRENT]) == [int(fate) for fate in node_fates(step)[1:]]
        assert [token for *_, token in cells(data[ANSWERS])] == step.panel["answers"]
        expected = {
            (before.start + j, before.index - step.index, token)
            for before in trace.steps[: step.index]
            for j, token in enumerate(before.tokens[1:])
        }
        past = cells(data[PAST])
        oldest = min((y for _, y, _ in past), default=0)
        assert set(past) == {cell for cell in expected if cell[0] > left and cell[1] >= oldest}
        right_ones = [place for place, code in zip(past, fates(data[PAST]), strict=True) if code == Fate.ACCEPTED]
        assert list(zip(data[SETTLED]["x"], data[SETTLED]["y"], strict=True)) == [(x, y) for x, y, _ in right_ones]
        steps = trace.steps[step.index - len(data[FRONT]["x"]) // 2 + 1 : step.index + 1]
        assert data[FRONT]["x"] == [before.start - 0.5 for before in steps for _ in range(2)]
        assert data[DIAGONALS]["x"] == [step.start - 0.5, *[step.start + len(step.emitted) - 0.5] * 2]
        assert left < step.start < right
        settled += step.accepted
    assert settled > 0


def test_a_changed_record_gives_another_figure() -> None:
    """The negative control of the tests above."""
    trace = record("lookahead")
    k = next(step.index for step in trace.steps if step.panel["phase"] == "steady")
    panel = trace.steps[k].panel
    new = [panel["new"][0] + 1, *panel["new"][1:]]
    other = changed(trace, k, panel={**panel, "new": new})
    assert drawn(trace, VIEW, k)["data"][ANSWERS] != drawn(other, VIEW, k)["data"][ANSWERS]
    rows = [[row[0] + 1, *row[1:]] for row in panel["rows"]]
    other = changed(trace, k, panel={**panel, "rows": rows})
    assert drawn(trace, VIEW, k)["data"][PAST] != drawn(other, VIEW, k)["data"][PAST]


def test_only_runs_that_recorded_a_window_show_it() -> None:
    """Elsewhere it would be an empty box."""
    for method in ("lookahead", "jacobi"):
        header = record(method).header
        assert VIEW.shows(header) and not VIEW.shows(replace(header, record="off"))
    assert not VIEW.shows(record("ouroboros").header)
    assert len(VIEW.nodes) == len(VIEW.phases) == PARTS


def test_a_wide_window_holds_no_texts_but_all_cells() -> None:
    """Texts that lie on each other help nobody."""
    trace = run("lookahead", {"W": 40, "N": 4, "G": 2})
    data = VIEW.base(RunState(trace.header))["data"]
    assert "font" not in data[PAST] and len(data[PAST]["x"]) == 39 + 40 + 40
