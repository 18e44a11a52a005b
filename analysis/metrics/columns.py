"""One table of a run folder as numpy columns, read once and shared by all selections."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .result import UnknownError

Array = np.ndarray[Any, Any]

# What is shown where a column is null throughout.
REASONS = {
    "runs.prefill_seconds": "this record has no time of the first step",
    "runs.decode_seconds": "this record has no time of the later steps",
    "runs.new_tokens": "this record does not count the new tokens",
    "runs.category": "the questions of this record have no categories",
    "steps.start": "this record has no text lengths before its steps",
    "steps.drafted": "this record does not count the guesses of a step",
    "steps.fed": "this record does not count the rows that the target read",
    "steps.experts": "this record does not count the experts that a step's pass read",
    "steps.entropy": "this record has no entropy of the target",
    "steps.total_ms": "this record has no times of steps",
    "steps.draft_ms": "this record does not split a step's time into its phases",
    "nodes.wanted": "this record lacks the tokens that the target chose instead of guesses",
    "nodes.confidence": "this record lacks the drafter's probabilities",
    "nodes.p": "this record lacks the target's probabilities",
    "nodes.rank": "this record lacks the rank of the target's choice",
    "nodes.overlap": "this record lacks the distributions of target and drafter",
    "nodes.sibling": "this record does not tell which guesses are siblings",
    "nodes.token": "this record lacks the tokens of the guesses",
}
NO_GUESS = "no step of this selection had a guess"
EMPTY = {"runs": "no run is chosen", "steps": "no step is chosen", "nodes": "this record lacks the single guesses"}


class TableColumns:
    """The columns of one table."""

    def __init__(self, name: str, table: pa.Table, missing: Mapping[str, str]) -> None:
        self.name, self.table, self.reasons = name, table, missing
        self._numbers: dict[str, Array] = {}
        self._codes: dict[str, tuple[Array, list[str]]] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def number(self, column: str) -> Array:
        """Return a column of numbers; NaN where it is null."""
        if column not in self._numbers:
            values = self.table[column].combine_chunks()
            if pa.types.is_boolean(values.type):
                values = values.cast(pa.uint8())
            self._numbers[column] = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return self._numbers[column]

    def codes(self, column: str) -> tuple[Array, list[str]]:
        """Return a column of texts as indices into its different texts, and these; -1 where it is null."""
        if column not in self._codes:
            values = self.table[column].combine_chunks()
            if not pa.types.is_dictionary(values.type):
                values = pc.dictionary_encode(values)
            codes = pc.fill_null(values.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
            self._codes[column] = codes, [text or "" for text in values.dictionary.to_pylist()]
        return self._codes[column]

    @cached_property
    def unknown(self) -> dict[str, str]:
        """The reasons by column, the record's own before ours."""
        ours = {key.partition(".")[2]: text for key, text in REASONS.items() if key.startswith(f"{self.name}.")}
        recorded = {key.removeprefix(f"{self.name}."): text for key, text in self.reasons.items()}
        return ours | recorded


class ChosenRows:
    """Some rows of a table."""

    def __init__(self, columns: TableColumns, rows: Array) -> None:
        self.columns, self.rows = columns, rows

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, mask: Array) -> ChosenRows:
        """Select the rows of a boolean mask."""
        return ChosenRows(self.columns, self.rows[mask])

    def maybe(self, column: str) -> Array:
        """Return a column of numbers, which may be NaN throughout."""
        return self.columns.number(column)[self.rows]

    def number(self, column: str) -> Array:
        """Return a column of numbers, NaN where it is null; raise UnknownError if it is null throughout."""
        values = self.maybe(column)
        if np.isnan(values).all():
            raise self.lacking(column)
        return values

    def codes(self, column: str) -> tuple[Array, list[str]]:
        """Return a column of texts as indices and texts, -1 where null or empty; raise UnknownError if all are."""
        codes, texts = self.columns.codes(column)
        empty = texts.index("") if "" in texts else -1
        chosen = np.where(codes == empty, -1, codes)[self.rows]
        if (chosen < 0).all():
            raise self.lacking(column)
        return chosen, texts

    def is_text(self, column: str, text: str) -> Array:
        """Return a mask of the rows with this text."""
        codes, texts = self.columns.codes(column)
        return np.equal(codes[self.rows], texts.index(text) if text in texts else -2)

    def lacking(self, column: str) -> UnknownError:
        """Make the error that explains why a column is empty; of an empty table, with the record's own reason."""
        if not len(self):
            reason = self.columns.reasons.get(f"{self.columns.name}.{column}") if not len(self.columns) else None
            return UnknownError(reason or EMPTY[self.columns.name])
        return UnknownError(self.columns.unknown.get(column, f"this record does not know the column {column}"))
