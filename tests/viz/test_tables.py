"""Tables that are made for readers who see no picture: every cell in its place, and nothing said too early."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from decoding.types import Trace
from viz.cells import STEP_PHASES
from viz.fates import JUDGED
from viz.palette import Fate
from viz.run_state import RunState
from viz.stream.play import Play
from viz.tables import MOST_ROWS, Table, TableRow, as_json, fate_label, fates_of, outcome_of, texts_of
from viz.token_text import shown
from viz.views import VIEWS

from .records import HOSTILE, METHODS, changed, hostile, parsed, record

VERDICTS = {fate_label(fate) for fate in (*JUDGED, Fate.CORRECTION, Fate.BONUS, Fate.OWN)} | {"accepted"}


def made(trace: Trace) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield every table of a run: its step, its view and what the player gets."""
    play = Play(trace.header, cap=None)
    play.begin(trace.texts)
    for step in trace.steps:
        play.step(step)
        (line,) = parsed(play.rows(step.index))
        assert line["kind"] == "rows" and line["k"] == step.index
        for name, table in line["views"].items():
            yield step.index, name, table


def seen(table: dict[str, Any], phase: str) -> list[list[Any]]:
    """Return the cells of the rows that are known at a phase."""
    now = STEP_PHASES.index(phase)
    rows = [row for row in table["rows"] if STEP_PHASES.index(row.get("since", "propose")) <= now]
    rows = [row for row in rows if "until" not in row or now < STEP_PHASES.index(row["until"])]
    return [[at(cell, phase) for cell in row["cells"]] for row in rows]


def at(cell: Any, phase: str) -> Any:
    """Return what a cell says at a phase."""
    if not isinstance(cell, dict):
        return cell
    assert cell.keys() <= {*STEP_PHASES}
    return next((cell[each] for each in STEP_PHASES[STEP_PHASES.index(phase) :: -1] if each in cell), None)


@pytest.mark.sampled
@pytest.mark.parametrize("method", METHODS)
def test_every_cell_has_a_heading_and_every_node_exists(method: str) -> None:
    names = set[str]()
    for k, name, table in made(record(method)):
        names.add(name)
        nodes = len(record(method).steps[k].tokens)
        assert len({*table["headings"]}) == len(table["headings"])
        assert all(len(row["cells"]) == len(table["headings"]) for row in table["rows"])
        assert all(0 <= row.get("node", 0) < nodes for row in table["rows"])
        assert table["rows"] or table["say"]
    assert names == {view.name for view in VIEWS.values() if view.rows and view.shows(record(method).header)}


@pytest.mark.parametrize("method", METHODS)
def test_no_verdict_stands_in_a_table_before_it_is_given(method: str) -> None:
    """Of earlier steps everything is known: the iterations that a Jacobi window shows were judged long ago."""
    verdicts = 0
    for _, _, table in made(record(method)):
        for phase in ("propose", "verify", "answers"):
            rows = [row for row in seen(table, phase) if not any("ago" in str(cell) for cell in row)]
            words = {word for row in rows for cell in row for word in str(cell).replace(",", " ").split()}
            assert not words & VERDICTS
        verdicts += sum(any(verdict in str(row) for verdict in VERDICTS) for row in seen(table, "commit"))
    assert verdicts or method == "autoregressive"


@pytest.mark.parametrize("method", ["lookahead", "ngrammys", "medusa", "jacobi"])
def test_tokens_are_shown_whole_and_visible(method: str) -> None:
    """As figures show them, but not cut to the width of a cell."""
    tokens = {shown(text) for text in HOSTILE}
    for _, name, table in made(hostile(record(method))):
        if table["headings"][0] == "Token":
            assert {row["cells"][0] for row in table["rows"]} <= tokens, name


def test_tokens_side_by_side_keep_their_places() -> None:
    """A text that is written from right to left does not turn its neighbours around."""
    run = RunState(record("rest").header, {1: "a", 2: "\u05e9\u05dc", 3: " b"})
    assert texts_of(run, [1, 2, 3, 4]) == "a \u2068\u05e9\u05dc\u2069 ·b #4"


def test_a_judgement_is_known_from_the_acceptance_on() -> None:
    trace = record("draft_model")
    step = next(step for step in trace.steps if step.accepted)
    assert fates_of(step, [0]) == "Root"
    assert fates_of(step, [1], text=2) == {
        "propose": "Prompt, Prompt, Proposed",
        "accept": "Prompt, Prompt, Accepted",
    }
    assert fates_of(step, [-1]) == "not fed"
    assert outcome_of(2, "new") == {"accept": "2 accepted", "commit": "2 accepted, new"}
    assert outcome_of(0, "new") == {"accept": "", "commit": "new"}
    assert outcome_of(0) is None


def test_what_is_left_out_of_a_long_table_is_counted() -> None:
    long = [TableRow(("x",), until="verify")] * 3 + [TableRow(("y",), since="commit")] * (MOST_ROWS + 5)
    table = as_json(Table(("Word",), long))
    assert len(table["rows"]) == MOST_ROWS + 3 and table["count"] == MOST_ROWS + 5
    assert "count" not in as_json(Table(("Word",), long[:9]))


@pytest.mark.sampled
@pytest.mark.parametrize("method", METHODS)
def test_panels_that_hold_nothing_known_make_tables_all_the_same(method: str) -> None:
    trace = record(method)
    for junk in ({}, {"rows": 3, "guesses": [[1]], "pool": None, "hits": [10**9]}, {"n": 10**9, "ending": "x"}):
        odd = replace(trace, steps=tuple(replace(step, panel=junk) for step in trace.steps))
        assert all(table["headings"] for _, _, table in made(odd))


def test_a_guess_that_was_not_fed_says_so() -> None:
    """The pool may hold more than a step has room for."""
    trace = record("lookahead")
    k = next(k for k, step in enumerate(trace.steps) if step.panel.get("guesses"))
    panel = trace.steps[k].panel
    more = changed(trace, k, panel=panel | {"guesses": [[999, 998, 997], *panel["guesses"]]})
    table = next(table for number, name, table in made(more) if (number, name) == (k, "pool"))
    cells = [row["cells"] for row in table["rows"] if row["cells"][0] == "#999 #998 #997"]
    assert [row[3] for row in cells] == ["not fed, not fed, not fed"]
