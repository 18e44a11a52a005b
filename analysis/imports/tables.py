"""Collects the rows that importers read, column by column, and makes the three tables of a run folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from decoding.errors import TraceError
from decoding.types import JSON

from ..store.folder import as_table
from ..store.schema import NODES, NODES_SCHEMA, RUNS, RUNS_SCHEMA, SCHEMAS, STEPS, STEPS_SCHEMA, VERSION

_RUNS, _STEPS = 100_000, 2_000_000
_DEFAULTS = {"category": "", "turn": 1, "setting": "default", "reconstructed": False}
WITHOUT = "the guesses are known without it: their drafter has none, or the record is a light one"
NO_NODES = "no engine records its rejected guesses: draft them again with --restore"


class Imported(NamedTuple):
    """The three tables and the summary of a run folder."""

    runs: pa.Table
    steps: pa.Table
    nodes: pa.Table
    summary: dict[str, JSON]


def speed(tokens: int | None, first: float | None, later: float | None) -> dict[str, float | None]:
    """Make a run's columns of time, from the seconds of its first step and of all later ones."""
    return {
        "prefill_seconds": first,
        "decode_seconds": later,
        "tokens_per_second": (tokens - 1) / later if later and tokens else None,
    }


class ImportedRows:
    """The rows so far."""

    def __init__(self) -> None:
        self._runs: list[dict[str, Any]] = []
        self._steps: dict[str, list[Any]] = {name: [] for name in STEPS_SCHEMA.names}
        self.missing: dict[str, str] = {}  # reasons by "table.column", where the importer knows one

    def __len__(self) -> int:
        return len(self._runs)

    def add_run(self, where: str, **columns: Any) -> int:
        """Add a run and return its number. `where` begins an error."""
        if len(self._runs) == _RUNS:
            raise TraceError(f"{where} is one more than the {_RUNS} runs that are read: split the file")
        number = len(self._runs)
        self._runs.append({"run": number, **_DEFAULTS, "question": str(number), **columns})
        return number

    def add_steps(
        self, where: str, run: int, accepted: Sequence[int], *, drafts: int | None = None, **columns: Sequence[Any]
    ) -> None:
        """Add the steps of a run, numbered from 0, and their sums to the run's own columns.

        `drafts` counts the guesses of all steps, where the record does not say how many each of them had.
        """
        count, begun = len(accepted), len(self._steps["run"])
        if begun + count > _STEPS:
            raise TraceError(f"{where} makes more than the {_STEPS} steps that are read: split the file")
        given = {"run": [run] * count, "step": range(count), "accepted": accepted, **columns}
        given.setdefault("written", [each + 1 for each in accepted])
        for name, values in self._steps.items():
            values.extend(given.get(name) or [None] * count)
            assert len(values) == begun + count, f"the column {name} has another length"
        row = self._runs[run]
        row.setdefault("steps", count)
        row.setdefault("accepted", sum(accepted))
        if row.get("new_tokens") is None:
            row["new_tokens"] = sum(given["written"])
        if count:
            row["mean_acceptance_length"] = sum(given["written"]) / count
        drafted = given.get("drafted")
        row.setdefault("drafted", sum(drafted) if drafted and None not in drafted else drafts)

    def finished(self, name: str, source: str, title: str, **more: JSON) -> Imported:
        """Return the tables; the summary has a reason for everything they lack."""
        if not self._runs:
            raise TraceError(f"the file holds no run of {title}")
        runs = as_table(self._runs, RUNS)
        steps = as_table(pa.table(self._steps, schema=STEPS_SCHEMA), STEPS)
        nodes = as_table([], NODES)
        missing = lacking(runs, steps, nodes, title) | self.missing
        return Imported(runs, steps, nodes, summary(name, source, missing, **more))


def summary(name: str, source: str, missing: Mapping[str, str], **more: JSON) -> dict[str, JSON]:
    """Make a folder's summary with all its usual fields."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    whole = {"version": VERSION, "source": source, "name": name, "created": created, "finished": True}
    return whole | {"missing": dict(missing)} | {key: value for key, value in more.items() if value}


def lacking(runs: pa.Table, steps: pa.Table, nodes: pa.Table, title: str) -> dict[str, str]:
    """Return a reason for every column that is null throughout, by "table.column"."""
    reasons = {}
    for table, rows, schema in ((RUNS, runs, RUNS_SCHEMA), (STEPS, steps, STEPS_SCHEMA)):
        for column in schema.names:
            if rows[column].null_count == len(rows):
                reasons[f"{table}.{column}"] = f"{title} does not record it"
    for column in NODES_SCHEMA.names:
        if nodes[column].null_count == len(nodes):
            reasons[f"{NODES}.{column}"] = WITHOUT if len(nodes) else NO_NODES
    return reasons


def merged(parts: Iterable[Imported], name: str) -> Imported:
    """Merge several imports into one, with their runs renumbered."""
    tables: dict[str, list[pa.Table]] = {table: [] for table in SCHEMAS}
    sources, missing, first = dict[str, None](), dict[str, str](), 0
    for part in parts:
        for table, rows in zip(SCHEMAS, part[:3], strict=True):
            numbers = pa.array([number + first for number in rows["run"].to_pylist()], pa.int64())
            tables[table].append(rows.set_column(0, SCHEMAS[table].field("run"), numbers))
        first += len(part.runs)
        sources[str(part.summary["source"])] = None
        missing |= part.summary["missing"]
    runs, steps, nodes = whole = [pa.concat_tables(tables[table]) for table in SCHEMAS]
    filled = {
        f"{table}.{column}"
        for table, rows in zip(SCHEMAS, whole, strict=True)
        for column in rows.column_names
        if rows[column].null_count < len(rows)
    }
    left = {key: reason for key, reason in missing.items() if key not in filled}
    return Imported(runs, steps, nodes, summary(name, ", ".join(sources), left))
