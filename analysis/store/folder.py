"""Reads and writes run folders: three tables as Parquet, a summary as JSON, and traces on request.

    runs.parquet, steps.parquet, nodes.parquet    the tables of schema.py, sorted by run, step and node
    summary.json                                  what the folder is: version, source, name, created, finished, missing
    traces/*.jsonl.gz                             the runs' traces, where they were asked for
    parts/                                        finished questions of an evaluation that has not come to its end

Files come from strangers: sizes, types and the numbers that join the tables are checked while reading.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from decoding.errors import ParamError, TraceError
from decoding.trace.json_line import parse_object, show
from decoding.types import JSON

from .checks import FolderLimits, check_table, check_tables, plain_texts
from .schema import NODES, RUNS, SCHEMAS, STEPS, VERSION

SUMMARY, PARTS, TRACES = "summary.json", "parts", "traces"
_LIMITS = FolderLimits()
_SUMMARY_DEPTH = 16
COMPRESSION = {"compression": "zstd", "compression_level": 6}
_THRIFT = {"thrift_string_size_limit": 2**26, "thrift_container_size_limit": 2**22}
# What hostile Parquet makes pyarrow raise; all of it means that the file is damaged.
_DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError)

TableRows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run folder's contents. Columns that its source does not know are null."""

    path: Path
    runs: pa.Table
    steps: pa.Table
    nodes: pa.Table
    summary: Mapping[str, JSON]

    @property
    def finished(self) -> bool:
        """Whether the measurement is complete."""
        return bool(self.summary["finished"])


def write_folder(
    path: str | Path,
    runs: pa.Table | TableRows,
    steps: pa.Table | TableRows,
    nodes: pa.Table | TableRows,
    summary: Mapping[str, JSON],
) -> Path:
    """Write a finished folder where there is none yet, from tables or from rows; both may leave columns out.

    `summary` must have "source" and "name"; version, created, finished and missing are filled in.
    """
    folder = Path(path)
    tables = {name: as_table(rows, name) for name, rows in ((RUNS, runs), (STEPS, steps), (NODES, nodes))}
    for name, table in tables.items():
        check_table(table, name, name)
    check_tables(tables[RUNS], tables[STEPS], tables[NODES])
    make_folder(folder)
    if any(folder.iterdir()):
        raise ParamError(f"the folder {show(str(folder))} is not empty: name a new one")
    for name, table in tables.items():
        write_table(folder / f"{name}.parquet", table)
    write_summary(folder, summary)
    return folder


def as_table(rows: pa.Table | TableRows, name: str) -> pa.Table:
    """Make a table of this name from rows; missing columns become null."""
    schema = SCHEMAS[name]
    if not isinstance(rows, pa.Table):
        listed = [dict(row) for row in rows]
        unknown = {key for row in listed for key in row} - set(schema.names)
        assert not unknown, f"the table {name} has no columns {sorted(unknown)}"
        try:
            return pa.Table.from_pylist(listed, schema=schema)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
            raise TraceError(f"{name} holds a value of another type than its column ({_first_line(error)})") from None
    assert not (unknown := set(rows.column_names) - set(schema.names)), f"the table {name} has no columns {unknown}"
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def make_folder(path: Path) -> None:
    """Make a folder unless it exists."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise ParamError(f"cannot make the folder {show(str(path))}: {_reason(error)}") from None


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table, so that the file is there as a whole or not at all."""
    with replacing(path) as draft, pq.ParquetWriter(draft, table.schema, **COMPRESSION) as writer:
        writer.write_table(table)


def write_summary(folder: Path, summary: Mapping[str, JSON]) -> None:
    """Write a folder's summary, its usual fields filled in."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    whole = {"version": VERSION, "created": created, "finished": True, "missing": {}, **summary}
    _check_summary(whole)
    with replacing(folder / SUMMARY) as draft:
        draft.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file to write, which takes the place of `path` unless something goes wrong."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        raise ParamError(f"cannot write {show(str(path))}: {_reason(error)}") from None
    finally:
        with suppress(OSError):
            draft.unlink()


def read_folder(path: str | Path, limits: FolderLimits = _LIMITS) -> RunFolder:
    """Read a folder; of an evaluation that has not come to its end, the questions that it has finished."""
    folder = Path(path)
    if not _is_kind(folder, stat.S_ISDIR):
        raise ParamError(f"there is no run folder {show(str(path))}: name one that an evaluation or an import has made")
    summary = read_summary(folder)
    whole = [folder / f"{name}.parquet" for name in SCHEMAS]
    if summary["finished"] or all(_is_kind(file, stat.S_ISREG) for file in whole):
        tables = [read_table(file, name, limits) for file, name in zip(whole, SCHEMAS, strict=True)]
    else:
        tables = _from_parts(folder, limits)
    runs, steps, nodes = tables
    check_tables(runs, steps, nodes)
    return RunFolder(folder, runs, steps, nodes, summary)


def read_summary(folder: Path) -> dict[str, JSON]:
    """Read and check a folder's summary."""
    path = folder / SUMMARY
    data = _read_bytes(path, _LIMITS.summary_bytes)
    summary = parse_object(data, SUMMARY, _SUMMARY_DEPTH)
    _check_summary(summary)
    return summary


def read_table(path: Path, name: str, limits: FolderLimits = _LIMITS) -> pa.Table:
    """Read and check one table of a folder. Columns that the file lacks are null; unknown ones are left out."""
    where, schema = path.name, SCHEMAS[name]
    _check_file(path, limits.file_bytes)
    texts = {field.name for field in schema if pa.types.is_string(field.type)}
    try:
        with pq.ParquetFile(path, **_THRIFT) as file:
            metadata, have = file.metadata, set(file.schema_arrow.names)
            limits.check_size(metadata, name, where)
            paths = {metadata.schema.column(place).path for place in range(metadata.num_columns)}
        # Texts stay indices until their length is counted: a page of a kilobyte can repeat one for gigabytes.
        with pq.ParquetFile(path, metadata=metadata, read_dictionary=sorted(texts & paths), **_THRIFT) as file:
            table = file.read(columns=[column for column in schema.names if column in have])
        table.validate(full=True)
    except TraceError:
        raise
    except _DAMAGE as error:
        raise TraceError(f"{where} is no Parquet file that can be read ({_first_line(error)}): make it again") from None
    filled = _with_types(table, name, where, limits)
    check_table(filled, name, where)
    return filled.cast(schema)


def part_files(folder: Path) -> list[dict[str, Path]]:
    """Yield the files of every finished question, by table, in the questions' order.

    The table of runs is written last, so that a question without it is not finished.
    """
    runs = sorted((folder / PARTS).glob(f"[0-9]*-{RUNS}.parquet"))
    return [{name: each.with_name(each.name.replace(RUNS, name)) for name in SCHEMAS} for each in runs]


def renumbered(tables: Mapping[str, pa.Table], first: int) -> dict[str, pa.Table]:
    """Return a part's tables, whose runs are numbered from 0, with `first` added to the numbers."""
    shifted = {}
    for name, table in tables.items():
        numbers = pa.array(table["run"].to_numpy() + first, pa.int64())
        shifted[name] = table.set_column(table.schema.get_field_index("run"), SCHEMAS[name].field("run"), numbers)
    return shifted


def _with_types(table: pa.Table, name: str, where: str, limits: FolderLimits) -> pa.Table:
    """Return a table that was read, with all columns of the schema."""
    columns = []
    for field in SCHEMAS[name]:
        if field.name not in table.column_names:
            columns.append(pa.chunked_array([pa.nulls(len(table), field.type)]))
            continue
        column = table[field.name]
        if pa.types.is_string(field.type) and pa.types.is_dictionary(column.type):
            column = plain_texts(column, f"{where}: column {field.name}", limits)
        if column.type != field.type:
            raise TraceError(f"{where}: column {field.name} must be of type {field.type}, not {str(column.type)[:60]}")
        columns.append(column)
    return pa.table(columns, names=SCHEMAS[name].names)


def _from_parts(folder: Path, limits: FolderLimits) -> list[pa.Table]:
    """Join the tables of an evaluation's finished questions."""
    parts: dict[str, list[pa.Table]] = {name: [as_table([], name)] for name in SCHEMAS}
    first = 0
    for files in part_files(folder):
        tables = renumbered({name: read_table(file, name, limits) for name, file in files.items()}, first)
        first += len(tables[RUNS])
        for name, table in tables.items():
            parts[name].append(table)
    return [pa.concat_tables(parts[name]) for name in SCHEMAS]


def _check_summary(summary: Mapping[str, JSON]) -> None:
    kinds = {"version": int, "source": str, "name": str, "created": str, "finished": bool, "missing": dict}
    for key, kind in kinds.items():
        if type(summary.get(key)) is not kind:
            what = {int: "a whole number", str: "a text", bool: "true or false", dict: "an object"}[kind]
            raise TraceError(f"{SUMMARY}: {key} must be {what}, not {show(summary.get(key))}")
    if summary["version"] != VERSION:
        raise TraceError(f"{SUMMARY} is of version {show(summary['version'])}, and {VERSION} is read: make it again")
    if not all(isinstance(reason, str) for reason in summary["missing"].values()):
        raise TraceError(f"{SUMMARY}: missing must hold a sentence for every column")


def _read_bytes(path: Path, most: int) -> bytes:
    _check_file(path, most)
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise ParamError(f"cannot read {show(str(path))}: {_reason(error)}") from None


def _check_file(path: Path, most: int) -> None:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise ParamError(
            f"there is no {path.name} in {show(str(path.parent))}: name a folder that `evaluate` made"
        ) from None
    except (OSError, ValueError) as error:
        raise ParamError(f"cannot read {show(path.name)} of the run folder: {_reason(error)}") from None
    if not stat.S_ISREG(status.st_mode):
        raise TraceError(f"{path.name} is no file: make the run folder again")
    if status.st_size > most:
        raise TraceError(f"{path.name} has {status.st_size:,} bytes, more than the {most:,} allowed")


def _is_kind(path: Path, kind: Any) -> bool:
    try:
        return bool(kind(path.stat().st_mode))
    except (OSError, ValueError):
        return False


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


def _reason(error: BaseException) -> str:
    return str(isinstance(error, OSError) and error.strerror or error)
