"""The table of Token Recycling: what the target last found likely after each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from .shared import Shared

RowOrigin = Literal["accepted", "rejected", "prompt"]  # the fate of the node that a row comes from, or a prompt


class CandidateRow(NamedTuple):
    """The likeliest tokens after a token, the best first."""

    entries: tuple[int, ...]
    step: int  # of the run that wrote it
    origin: RowOrigin
    run: int = 0  # the number of that run in the table


class CandidateTable(Shared):
    """A row for every token that was read, at most `largest`: the least recently replaced row makes room."""

    def __init__(self, largest: int = 32_768) -> None:
        self._rows = dict[int, CandidateRow]()  # the least recently replaced row first
        super().__init__()
        self._largest, self._runs = largest, 0

    def begin(self) -> int:
        """Number a new run, so that its rows can be distinguished from those of other runs."""
        with self._lock:
            self._runs += 1
            return self._runs

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, token: int) -> CandidateRow | None:
        """Return the row of a token; None before it was read."""
        return self._rows.get(token)

    def put(self, token: int, row: CandidateRow) -> tuple[int, ...]:
        """Replace a token's row; return the entries that it had."""
        with self._lock:
            old = self._rows.pop(token, None)
            self._rows[token] = row
            if len(self._rows) > self._largest:
                del self._rows[next(iter(self._rows))]
        return old.entries if old else ()

    def read(self, prompt: Sequence[int], k: int) -> None:
        """Put the followers of each token in a prompt at the front of its row, the latest first."""
        rows = dict[int, tuple[int, ...]]()
        for token, follower in zip(prompt, prompt[1:], strict=False):
            before = self.row(token)
            entries = rows.get(token, before.entries if before else ())
            rows[token] = (follower, *(entry for entry in entries if entry != follower))[:k]
        for token, entries in rows.items():
            self.put(token, CandidateRow(entries, -1, "prompt"))
