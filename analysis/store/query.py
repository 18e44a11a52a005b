"""Selects steps of a run folder: by a few filters, which write an SQL query, or by the query itself.

A query that selects steps has the columns run and step; the result of any other SELECT is a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from decoding.errors import ParamError

from .sql import QueryBounds, QueryResult, run

SELECTED = QueryBounds(seconds=5.0, rows=2_000_000)  # of a query that chooses steps
SHOWN = QueryBounds(seconds=5.0, rows=500)  # of one whose table is shown
_TEXT = 200  # characters of a filter's text
_CELL = 300  # characters of a cell that is shown
_COLUMNS = 64  # of a table that is shown


@dataclass(frozen=True, slots=True)
class Filter:
    """The conditions on steps; None is no condition. Bounds include their ends."""

    text: str | None = None  # in a guess of the step
    wanted: str | None = None  # what the target chose instead of a guess
    question: str | None = None
    category: str | None = None
    method: str | None = None
    setting: str | None = None
    accepted: int | None = None  # at least
    rejected_at: int | None = None  # the guess at this depth is the first that was rejected
    slower: float | None = None  # milliseconds
    p_from: float | None = None  # of a guess of the step
    p_to: float | None = None
    q_from: float | None = None
    q_to: float | None = None
    depth: int | None = None  # of that guess, from 1
    context_from: int | None = None  # tokens before the step
    context_to: int | None = None

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Filter:
        """Parse a filter from texts; raise ParamError if one does not fit. Empty texts are no condition."""
        kinds = {each.name: str(each.type).partition(" ")[0] for each in fields(cls)}
        if unknown := sorted(set(raw) - set(kinds)):
            raise ParamError(f"there is no filter {unknown[0][:40]!r}: choose among {', '.join(kinds)}")
        asked = {name: value for name, value in raw.items() if value is not None and value != ""}
        given: dict[str, Any] = {name: _value(name, kinds[name], value) for name, value in asked.items()}
        return cls(**given)

    def sql(self) -> str:
        """Write the query that chooses these steps."""
        of_steps, of_nodes = self._conditions_of_steps(), self._conditions_of_nodes()
        if of_nodes:
            inner = "\n      AND ".join(of_nodes)
            of_steps.append(f"(run, step) IN (\n    SELECT run, step FROM nodes\n    WHERE {inner})")
        lines = ["SELECT run, step", "FROM steps JOIN runs USING (run)"]
        if of_steps:
            lines.append("WHERE " + "\n  AND ".join(of_steps))
        return "\n".join([*lines, "ORDER BY run, step"])

    def _conditions_of_steps(self) -> list[str]:
        named = {"question": self.question, "category": self.category, "method": self.method, "setting": self.setting}
        conditions = [f"{name} = {quoted(value)}" for name, value in named.items() if value is not None]
        if self.accepted is not None:
            conditions.append(f"steps.accepted >= {self.accepted}")
        if self.slower is not None:
            conditions.append(f"total_ms > {self.slower!r}")
        return conditions + _between("start", self.context_from, self.context_to)

    def _conditions_of_nodes(self) -> list[str]:
        conditions = []
        if self.text is not None:
            conditions.append(f"contains(text, {quoted(self.text)})")
        if self.wanted is not None:
            conditions.append(f"contains(wanted_text, {quoted(self.wanted)})")
        if self.depth is not None:
            conditions.append(f"depth = {self.depth}")
        if self.rejected_at is not None:
            conditions.append(f"depth = {self.rejected_at} AND judged AND NOT accepted")
        conditions += _between("p", self.p_from, self.p_to) + _between("q", self.q_from, self.q_to)
        return ["parent >= 0", *conditions] if conditions else []


def quoted(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def _between(column: str, low: float | None, high: float | None) -> list[str]:
    if low is not None and high is not None:
        return [f"{column} BETWEEN {low!r} AND {high!r}"]
    return [f"{column} {sign} {bound!r}" for sign, bound in ((">=", low), ("<=", high)) if bound is not None]


def _value(name: str, kind: str, value: Any) -> str | int | float:
    if kind == "str":
        if not isinstance(value, str) or len(value) > _TEXT or "\0" in value:
            raise ParamError(f"the filter {name} must be a text of at most {_TEXT} characters")
        return value
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= 1e9 or (kind == "int" and number != int(number)):
        what = "a whole number" if kind == "int" else "a number"
        raise ParamError(f"the filter {name} must be {what} from 0 to a billion, not {str(value)[:40]!r}")
    return int(number) if kind == "int" else number


@dataclass(frozen=True, slots=True)
class ChosenSteps:
    """Steps that a query chose, each once and in order."""

    runs: np.ndarray[Any, np.dtype[np.int64]]
    steps: np.ndarray[Any, np.dtype[np.int64]]

    def __len__(self) -> int:
        return len(self.runs)


@dataclass(frozen=True, slots=True)
class Shown:
    """The result table of a query, as JSON: rows of numbers and texts."""

    columns: list[str]
    rows: list[list[Any]]
    more: bool  # rows than these


def answer_query(tables: Mapping[str, pa.Table], text: str) -> ChosenSteps | QueryResult:
    """Run a query; return the steps that it chooses, or a table to be shown."""
    result = run(tables, text, SELECTED)
    if {"run", "step"} <= set(result.table.column_names):
        if result.more:
            raise ParamError(f"the query selects more than {SELECTED.rows:,} rows: narrow it")
        return _steps_in(result)
    return QueryResult(result.table.slice(0, SHOWN.rows), result.more or len(result.table) > SHOWN.rows)


def _steps_in(answer: QueryResult) -> ChosenSteps:
    names = answer.table.column_names
    if names.count("run") != 1 or names.count("step") != 1:
        raise ParamError("a query that chooses steps has one column run and one column step: select both")
    columns = [answer.table.column(name) for name in ("run", "step")]
    if any(not pa.types.is_integer(column.type) or column.null_count for column in columns):
        raise ParamError("the columns run and step of a query must be whole numbers, as in the table steps")
    run_ids, steps = (column.cast(pa.int64()).to_numpy() for column in columns)
    order = np.lexsort((steps, run_ids))
    run_ids, steps = run_ids[order], steps[order]
    first = np.ones(len(order), bool)
    first[1:] = (run_ids[1:] != run_ids[:-1]) | (steps[1:] != steps[:-1])
    return ChosenSteps(run_ids[first], steps[first])


def cells(table: pa.Table) -> tuple[list[str], list[list[Any]]]:
    """Convert a table to JSON: its columns' names, and rows of numbers and of texts that are cut."""
    columns = [[_cell(value) for value in column.to_pylist()] for column in table.columns[:_COLUMNS]]
    return [_cut(name) for name in table.column_names[:_COLUMNS]], [list(row) for row in zip(*columns, strict=True)]


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Decimal):  # as sums of whole numbers are
        whole = int(value)
        value = whole if whole == value else float(value)
    if isinstance(value, int | float):
        return value if math.isfinite(value) and abs(value) < 2**53 else str(value)
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"
