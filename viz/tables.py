"""Views as tables: rows of words for readers who do not see the picture, or who want its numbers.

A cell may change during the step: {"propose": "Proposed", "accept": "Rejected"} holds its text from each phase on, so
that no table says what has not happened yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from decoding.types import Step

from . import token_text
from .cells import StepPhase
from .fates import node_fates, seen_fate
from .palette import Fate, meanings
from .run_state import RunState

MOST_ROWS = 1000  # that become known in one phase: more of them would stop a browser

Scalar = str | int | float | None
Cell = Scalar | Mapping[StepPhase, Scalar]


class TableRow(NamedTuple):
    """A row, the phases in which it is known, and the node that its first cell leads to."""

    cells: Sequence[Cell]
    node: int = -1
    since: StepPhase = "propose"
    until: StepPhase | None = None  # from this phase on other rows replace it


class Table(NamedTuple):
    """The table of a view in one step."""

    headings: Sequence[str]
    rows: Sequence[TableRow] = ()
    say: Sequence[Cell] = ()  # sentences above the table


def text_of(run: RunState, given: int) -> str:
    """Return a token's text as figures show it."""
    return token_text.shown(run.text(given))


def texts_of(run: RunState, given: Iterable[int]) -> str:
    """Return several tokens side by side; a text that is written from right to left stays in its place among them."""
    return " ".join(token_text.isolated(text_of(run, each)) for each in given)


def fate_label(fate: Fate, *, lossless: bool = True) -> str:
    """Return the name of a fate."""
    return meanings(lossless=lossless)[fate].label


def fate_of(step: Step, node: int, *, lossless: bool = True) -> Cell:
    """Return the fate of a node, as far as it is known."""
    return fates_of(step, [node], lossless=lossless)


def fates_of(step: Step, nodes: Sequence[int], text: int = 0, *, lossless: bool = True) -> Cell:
    """Return the fates of several nodes after `text` tokens of the text; -1 is a token that was not fed."""
    judged = node_fates(step)
    fates = [Fate.PROMPT] * text + [judged[node] if node >= 0 else None for node in nodes]
    after = ", ".join("not fed" if each is None else fate_label(each, lossless=lossless) for each in fates)
    guessed = [None if each is None else seen_fate(each, judged=False) for each in fates]
    before = ", ".join("not fed" if each is None else fate_label(each, lossless=lossless) for each in guessed)
    return after if before == after else {"propose": before, "accept": after}


def outcome_of(accepted: int, learned: str = "") -> Cell:
    """Return how many guesses of a row were accepted and what the method learned from it."""
    judged = f"{accepted} accepted" if accepted else ""
    return {"accept": judged, "commit": ", ".join(filter(None, (judged, learned)))} if judged or learned else None


def as_json(table: Table) -> dict[str, Any]:
    """Write a table as the player reads it; where rows are left out, with the number of all rows at the step's end."""
    rows, counts = list[dict[str, Any]](), Counter[StepPhase]()
    for row in table.rows:
        counts[row.since] += 1
        if counts[row.since] <= MOST_ROWS:
            rows.append(_row(row))
    count = {"count": sum(row.until is None for row in table.rows)} if len(rows) < len(table.rows) else {}
    return {"headings": table.headings, "rows": rows, "say": table.say} | count


def _row(row: TableRow) -> dict[str, Any]:
    fields: dict[str, Any] = {"cells": row.cells}
    fields |= {"node": row.node} if row.node >= 0 else {}
    fields |= {"since": row.since} if row.since != "propose" else {}
    return fields | ({"until": row.until} if row.until else {})
