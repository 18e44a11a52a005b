"""Kangaroo's adapter for table models: it guesses from hidden states that are the last few tokens."""

from __future__ import annotations

from collections import deque

import numpy as np
import torch

from decoding.model.table import TableModel


class ToyAdapter:
    """Agrees with the target to the degree of `mix`, and looks at the last `order` tokens of a hidden state only."""

    layer, about, vocabulary = 1, "toy adapter", None

    def __init__(self, target: TableModel, mix: float, order: int, seed: int) -> None:
        self.target_order = target.order
        vocabulary = target.card.vocabulary

        def rule(key: tuple[int, ...]) -> torch.Tensor:
            error = torch.from_numpy(np.random.default_rng([seed, *key]).normal(size=vocabulary))
            return mix * target.logits(key) + (1 - mix) * 1.5 * error

        self.guess = TableModel(rule, order, vocabulary)
        self.sessions = deque[ToySession](maxlen=16)  # that were opened last, for tests to look at

    def open(self, capacity: int, largest_step: int) -> ToySession:
        """Open a session; the sessions' positions are asserted and not merely counted."""
        self.sessions.append(ToySession(self, capacity, largest_step))
        return self.sessions[-1]


class ToySession:
    """Reads hidden states; each must continue the one before it, as the states of neighbouring tokens do."""

    def __init__(self, adapter: ToyAdapter, capacity: int, largest_step: int) -> None:
        self.capacity, self.largest_step = capacity, largest_step
        self.reads: list[int] = []  # rows of every reading
        self._adapter = adapter
        self._start = (-1,) * adapter.target_order  # in front of the text
        self._rows: list[tuple[int, ...]] = []

    @property
    def length(self) -> int:
        """Count the tokens read."""
        return len(self._rows)

    @property
    def text(self) -> list[int]:
        """Return the tokens that the hidden states read so far belong to."""
        return [row[-1] for row in self._rows]

    def read(self, hidden: torch.Tensor) -> torch.Tensor:  # (n, order) -> (n, order)
        """Read rows, none of which may skip, repeat or exchange a place of the text."""
        assert 1 <= len(hidden) <= self.largest_step
        assert self.length + len(hidden) <= self.capacity + self.largest_step
        for row in hidden.long().tolist():
            before = self._rows[-1] if self._rows else self._start
            assert tuple(row[:-1]) == before[1:], f"place {self.length} is fed the state of another place"
            assert row[-1] >= 0
            self._rows.append(tuple(row))
        self.reads.append(len(hidden))
        return hidden

    def look(self, hidden: torch.Tensor, parents: tuple[int, ...]) -> torch.Tensor:  # (n, order) -> (n, order)
        """Read a tree, of which nothing is stored; each row must continue the one above it."""
        rows = [tuple(row) for row in hidden.long().tolist()]
        assert len(rows) == len(parents) <= self.largest_step
        for row, parent in zip(rows, parents, strict=True):
            before = rows[parent] if parent >= 0 else self._rows[-1] if self._rows else self._start
            assert row[:-1] == before[1:], "a guess is fed the state of another place"
        return hidden

    def logits(self, rows: torch.Tensor) -> torch.Tensor:  # (R, order) -> (R, V)
        """Return the guesses after some rows."""
        return torch.stack([self._adapter.guess.logits([t for t in row if t >= 0]) for row in rows.long().tolist()])

    def rewind(self, length: int) -> None:
        """Forget what is after `length`; 0 begins a new text."""
        assert 0 <= length <= self.length
        del self._rows[length:]
        if not length:
            self.reads.clear()


def make(model: TableModel, mix: float = 0.6, order: int = 2, seed: int = 98) -> ToyAdapter:
    """Make an adapter for `model`."""
    return ToyAdapter(model, mix, order, seed)
