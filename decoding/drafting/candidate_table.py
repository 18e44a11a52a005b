"""The table of Token Recycling: what the target last found likely behind each token."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from threading import Lock
from typing import Any, Literal, NamedTuple

Behind = Literal["accepted", "rejected"]
Given = Literal["accepted", "rejected", "prompt"]


class Row(NamedTuple):
    """The likeliest tokens behind a token, the best first."""

    entries: tuple[int, ...]
    step: int  # of the run that gave it
    behind: Given  # what became of the node at which the target was asked; or what a prompt says stands first
    run: int = 0  # which of the table's runs that was


class CandidateTable:
    """A row for every token that was read, of at most `largest` tokens: those longest without a new row make room.

    Runs that go on at the same time can share a table.
    """

    def __init__(self, largest: int = 32_768) -> None:
        self._rows = dict[int, Row]()  # the row that was given first comes first
        self._largest, self._lock = largest, Lock()
        self._runs = 0

    def begin(self) -> int:
        """The number of a run that begins: rows of other runs are of no step of its own."""
        with self._lock:
            self._runs += 1
            return self._runs

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, token: int) -> Row | None:
        """The row of a token; None before it was read."""
        return self._rows.get(token)

    def put(self, token: int, row: Row) -> tuple[int, ...]:
        """Give a token another row; returns the entries of the one that it had."""
        with self._lock:
            old = self._rows.pop(token, None)
            self._rows[token] = row
            if len(self._rows) > self._largest:
                del self._rows[next(iter(self._rows))]
        return old.entries if old else ()

    def read(self, prompt: Sequence[int], k: int) -> None:
        """Put what follows each token in a prompt in front of its row: of several the last one first."""
        given = dict[int, tuple[int, ...]]()
        for token, follower in zip(prompt, prompt[1:], strict=False):
            row = given.get(token)
            if row is None:
                known = self.row(token)
                row = known.entries if known else ()
            given[token] = (follower, *(entry for entry in row if entry != follower))[:k]
        for token, entries in given.items():
            self.put(token, Row(entries, -1, "prompt"))


def remembered(memory: MutableMapping[str, Any], k: int) -> CandidateTable:
    """The table that earlier runs with rows of the same length left in `memory`; one of another length gives way."""
    name = f"table k={k}"
    table: CandidateTable | None = memory.get(name)
    if table is None:
        memory.clear()
        table = memory[name] = CandidateTable()
    return table
