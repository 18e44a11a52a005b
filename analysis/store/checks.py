"""Checks the rules of the three tables beyond their types; a folder that breaks one was not written by us."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoding.errors import TraceError
from decoding.trace.json_line import parse_object
from decoding.trace.rules import MOST_NATS

from .schema import NODES, RUNS, SCHEMAS, STEPS
from .totals import check_totals

_LARGEST = 1e18  # of a count, an amount or a time: sums of it stay finite
_LARGEST_NUMBER = 2**31 - 1  # of what is numbered, so that two fit into 64 bits; and of a text's tokens
_MOST = {
    **dict.fromkeys(("run", "step", "node", "parent", "depth", "sibling", "rank", "token", "wanted"), _LARGEST_NUMBER),
    **dict.fromkeys(("start", "fed", "prompt_tokens", "new_tokens"), _LARGEST_NUMBER),
    **dict.fromkeys(("p", "q", "confidence", "overlap"), 1.0),
    "entropy": MOST_NATS,
}
_ROLES = ("root", "verify", "explore")
_OBJECTS = ("params", "sampling")
_OBJECT_DEPTH = 16


@dataclass(frozen=True, slots=True)
class FolderLimits:
    """The limits beyond which an untrusted folder is refused."""

    summary_bytes: int = 4 * 2**20
    file_bytes: int = 2**30
    runs: int = 1_000_000
    steps: int = 10_000_000
    nodes: int = 50_000_000
    ids: int = 2**28  # of all lists of a table
    text_bytes: int = 2**30  # of a column, once it is no dictionary any more

    def check_size(self, metadata: Any, name: str, where: str) -> None:
        """Refuse a Parquet file by its metadata, before anything is unpacked."""
        most = {RUNS: self.runs, STEPS: self.steps, NODES: self.nodes}[name]
        if metadata.num_rows > most:
            raise TraceError(f"{where} has {metadata.num_rows:,} rows, more than the {most:,} allowed")
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        values = max((sum(g.column(c).num_values for g in groups) for c in range(metadata.num_columns)), default=0)
        if values > max(self.ids, most):
            raise TraceError(f"{where} has a column of {values:,} values, more than the {self.ids:,} allowed")


def plain_texts(column: pa.ChunkedArray, where: str, limits: FolderLimits) -> pa.ChunkedArray:
    """Decode the texts of a dictionary column, if they are not too long together."""
    total = 0
    for chunk in column.chunks:
        if not pa.types.is_string(chunk.type.value_type):
            raise TraceError(f"{where} must hold texts, not {str(chunk.type.value_type)[:60]}")
        lengths = pc.cast(pc.binary_length(chunk.dictionary), pa.int64())
        total += pc.sum(lengths.take(chunk.indices)).as_py() or 0
        if total > limits.text_bytes:
            raise TraceError(f"{where} holds texts of more than the {limits.text_bytes:,} bytes allowed")
    plain = column.cast(pa.string())
    try:
        plain.validate(full=True)  # a dictionary's texts are not looked at with the table's
    except pa.ArrowInvalid:
        raise TraceError(f"{where} must hold texts in UTF-8") from None
    return plain


def check_table(table: pa.Table, name: str, where: str) -> None:
    """Check one table by itself: nothing required is null, and every number is possible."""
    for field in SCHEMAS[name]:
        column, place = table[field.name], f"{where}: column {field.name}"
        if not field.nullable and column.null_count:
            raise TraceError(f"{place} must have a value in every row")
        if column.null_count == len(column):
            continue
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
            _check_numbers(column, field.name, place)
        elif pa.types.is_list(field.type) and (pc.min(pc.list_flatten(column)).as_py() or 0) < 0:
            raise TraceError(f"{place} must not hold negative token ids")
        if name == RUNS and field.name in _OBJECTS:
            for text in pc.unique(column).to_pylist():
                if text is not None:
                    parse_object(text.encode(), place, _OBJECT_DEPTH)
    if name == NODES and len(table):
        unknown = set(pc.unique(table["role"]).to_pylist()) - set(_ROLES)
        if unknown:
            raise TraceError(f"{where}: column role must be one of {', '.join(_ROLES)}")


def check_tables(runs: pa.Table, steps: pa.Table, nodes: pa.Table) -> None:
    """Check how the tables fit together: rows are sorted, the rows that they refer to exist, and the numbers agree."""
    of_runs, of_steps, of_nodes = _keys(runs, "run"), _keys(steps, "run", "step"), _keys(nodes, "run", "step", "node")
    for name, keys in ((RUNS, of_runs), (STEPS, of_steps), (NODES, of_nodes)):
        if not _increasing(keys):
            raise TraceError(f"the rows of {name} must be sorted by {', '.join(('run', 'step', 'node')[: len(keys)])}")
    if not np.isin(of_steps[0], of_runs[0]).all():
        raise TraceError("steps has a run that runs lacks")
    if not np.isin(_pairs(of_nodes), _pairs(of_steps)).all():
        raise TraceError("nodes has a step that steps lacks")
    parents, roots = nodes["parent"].to_numpy(), np.diff(_pairs(of_nodes), prepend=-1) != 0
    if not ((parents < of_nodes[2]) & ((parents == -1) == roots)).all():
        raise TraceError(
            "nodes: a step's first node must be its root, with parent -1, and others must follow their parent"
        )
    check_totals(runs, steps, nodes)


def _check_numbers(column: pa.ChunkedArray, name: str, place: str) -> None:
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
        raise TraceError(f"{place} must hold finite numbers")
    least = -1 if name == "parent" else 0
    most = _MOST.get(name, _LARGEST)
    if low < least or high > most:
        raise TraceError(f"{place} must hold numbers from {least} to {most:,g}")


def _keys(table: pa.Table, *names: str) -> list[Any]:
    return [table[name].to_numpy() for name in names]


def _increasing(keys: list[Any]) -> bool:
    """Return whether every row's keys, compared in order, are above those of the row before."""
    above, equal = np.zeros(max(0, len(keys[0]) - 1), bool), np.ones(max(0, len(keys[0]) - 1), bool)
    for key in keys:
        above |= equal & (key[1:] > key[:-1])
        equal &= key[1:] == key[:-1]
    return bool(above.all())


def _pairs(keys: list[Any]) -> Any:
    """Combine run and step into one number."""
    return (keys[0].astype(np.int64) << 32) | keys[1].astype(np.int64)
