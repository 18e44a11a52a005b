"""Tables of measured numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from decoding.errors import SpecscopeError

ResultCell = str | float | None


class UnmeasuredError(SpecscopeError):
    """A claim cannot be measured here; the message is the reason, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Measured numbers. The first cell of a row names it; `facts` are numbers that belong to no row."""

    heads: tuple[str, ...]
    rows: tuple[tuple[ResultCell, ...], ...]
    facts: Mapping[str, float] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the rows."""
        return [str(row[0]) for row in self.rows]

    def beside(self, head: str, numbers: Mapping[str, float]) -> ResultTable:
        """Add a column of numbers by the rows' names: those that the paper has."""
        rows = tuple((*row, numbers.get(name)) for name, row in zip(self.names, self.rows, strict=True))
        return ResultTable((*self.heads, head), rows, self.facts)

    def number(self, row: str, head: str) -> float:
        """Return one cell."""
        return dict(zip(self.names, self.column(head), strict=True))[row]

    def column(self, head: str) -> list[float]:
        """Return all cells under a head, which must be numbers."""
        place = self.heads.index(head, 1)
        cells = [row[place] for row in self.rows]
        numbers = [cell for cell in cells if isinstance(cell, int | float)]
        assert len(numbers) == len(cells), f"{head} holds what is no number"
        return numbers
