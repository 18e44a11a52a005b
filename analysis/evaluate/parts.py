"""Writes the finished questions of an evaluation one by one, and merges them into the tables at the end."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..store.folder import (
    COMPRESSION,
    PARTS,
    TRACES,
    make_folder,
    part_files,
    read_table,
    renumbered,
    replacing,
    write_table,
)
from ..store.schema import RUNS, SCHEMAS
from ..store.tables import by_name
from .question import Answered

_GROUP = 100_000  # rows of a row group, about: what a query skips or reads as one


def finished_questions(folder: Path) -> set[int]:
    """Return the numbers of the questions that are finished."""
    return {int(files[RUNS].name.partition("-")[0]) for files in part_files(folder)}


def write_part(folder: Path, number: int, answered: Answered) -> None:
    """Write a question's rows. The table of runs comes last: with it, the question is finished."""
    make_folder(folder / PARTS)
    if answered.traces:
        make_folder(folder / TRACES)
    for name, data in answered.traces.items():
        with replacing(folder / name) as draft:
            draft.write_bytes(data)
    for name, table in reversed(by_name(answered.tables).items()):
        write_table(folder / PARTS / f"{number:05}-{name}.parquet", table)


def merge(folder: Path) -> None:
    """Merge the parts in their order, and renumber their runs. Only a few of them are in memory at a time."""
    with ExitStack() as stack:
        writers = {}
        for name, schema in SCHEMAS.items():
            draft = stack.enter_context(replacing(folder / f"{name}.parquet"))
            writers[name] = stack.enter_context(_Groups(draft, schema))
        first = 0
        for files in part_files(folder):
            tables = renumbered({name: read_table(file, name) for name, file in files.items()}, first)
            first += len(tables[RUNS])
            for name, table in tables.items():
                writers[name].add(table)


def remove_parts(folder: Path) -> None:
    """Remove the parts of a folder whose tables are written."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)


class _Groups:
    """Writes tables as row groups of about the same size."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(path, schema, **COMPRESSION)
        self._waiting: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        self._waiting.append(table)
        if sum(map(len, self._waiting)) >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting).combine_chunks(), row_group_size=2 * _GROUP)
            self._waiting = []

    def __enter__(self) -> _Groups:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._flush()
        finally:
            self._writer.close()
