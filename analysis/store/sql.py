"""Runs one untrusted SELECT over tables in memory.

The query is checked (`allowed.py`) and then runs in its own database (`sandbox.py`), with limits on memory, threads,
time and result. Every failure is a ParamError of one sentence.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from decoding.errors import ParamError

from .allowed import check_query
from .sandbox import open_sandbox, refusal

_BATCH = 4_096  # rows that are looked at together
_PLAIN_TYPES = {
    "boolean", "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint",
    "float", "double", "decimal", "varchar",
}  # fmt: skip
# The query's own failures. Arrow's reader, which fetches, raises an OSError for whatever DuckDB raises.
_FAILURES = (duckdb.Error, pa.ArrowException, OSError, RuntimeError, MemoryError)


@dataclass(frozen=True, slots=True)
class QueryBounds:
    """The limits of one query."""

    seconds: float = 5.0
    rows: int = 1_000
    bytes: int = 64 * 2**20  # of its result


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a query, and whether there were more."""

    table: pa.Table
    more: bool


def run(tables: Mapping[str, pa.Table], text: str, bounds: QueryBounds | None = None) -> QueryResult:
    """Run a query over tables; raises ParamError if it is not a harmless SELECT, or exceeds a limit."""
    bounds = bounds or QueryBounds()
    check_query(text, {name: table.column_names for name, table in tables.items()})
    with closing(open_sandbox(tables)) as database:
        late = threading.Event()

        def stop() -> None:
            late.set()
            database.interrupt()

        timer = threading.Timer(bounds.seconds, stop)
        timer.daemon = True
        timer.start()
        try:
            return _fetch(database, text, bounds)
        except _FAILURES as error:
            if late.is_set():
                raise ParamError(
                    f"the query took longer than {bounds.seconds:g} seconds, so it was ended: ask for less"
                ) from None
            raise refusal(error) from None
        finally:
            timer.cancel()


def _fetch(database: duckdb.DuckDBPyConnection, text: str, bounds: QueryBounds) -> QueryResult:
    """Fetch a query's rows up to the bounds. Its result is read as it is made, so that more is never held."""
    relation = database.sql(text)
    names = relation.columns
    reader = _with_plain_types(relation).to_arrow_reader(_BATCH)
    rows, size, parts, more = 0, 0, list[pa.RecordBatch](), False
    for batch in reader:
        part = batch.slice(0, bounds.rows - rows)
        parts.append(part)
        rows, size, more = rows + len(part), size + part.nbytes, len(part) < len(batch)
        if size > bounds.bytes:
            raise ParamError(f"the result is larger than {bounds.bytes >> 20} MB: select fewer columns or rows")
        if more:
            break
    return QueryResult(pa.Table.from_batches(parts, reader.schema).rename_columns(names), more)


def _with_plain_types(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Have DuckDB write as text what is neither a number, a text nor a truth value.

    Arrow and Python have no infinite or very early timestamps, no time of 24:00 and no UHUGEINT: they fail, or show
    another value.
    """
    plain = [str(kind.id) in _PLAIN_TYPES for kind in relation.types]
    if all(plain):
        return relation
    columns = (f"#{place}" if is_plain else f"#{place}::VARCHAR" for place, is_plain in enumerate(plain, start=1))
    return relation.project(", ".join(columns))
