"""An EAGLE-3 drafter for table models, whose hidden states are the last few tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import torch

from decoding.model.draft_vocabulary import DraftVocabulary
from decoding.model.table import TableModel


class ToyEagle:
    """Agrees with the target to the degree of `mix`; cannot say every fifth token."""

    layers, about = (0, 1, 2), "toy drafter of features"

    def __init__(self, target: TableModel, mix: float, order: int, seed: int) -> None:
        self.target_order, vocabulary = target.order, target.card.vocabulary
        ids = [token for token in range(vocabulary) if vocabulary < 5 or token % 5 != 4]
        self.vocabulary = None if len(ids) == vocabulary else DraftVocabulary(torch.tensor(ids), vocabulary)

        def rule(key: tuple[int, ...]) -> torch.Tensor:
            error = torch.from_numpy(np.random.default_rng([seed, *key]).normal(size=vocabulary))
            return (mix * target.logits(key) + (1 - mix) * 1.5 * error)[ids]

        self.guess = TableModel(rule, order, vocabulary)
        self.sessions = deque[ToySession](maxlen=16)  # that were opened last, for tests to look at

    def open(self, capacity: int, largest_step: int) -> ToySession:
        """Open a session; the rows' positions are asserted and not merely counted."""
        self.sessions.append(ToySession(self, capacity, largest_step))
        return self.sessions[-1]


class ToySession:
    """Reads features; each must be that of the token in front of the row's."""

    def __init__(self, eagle: ToyEagle, capacity: int, largest_step: int) -> None:
        self.capacity, self.largest_step = capacity, largest_step
        self._eagle, self._order = eagle, eagle.target_order
        self._rows: list[tuple[int, ...]] = []  # of the text: the last tokens up to the row's own
        self._tree: list[tuple[int, ...]] = []

    @property
    def length(self) -> int:
        """Count the rows of the text read."""
        return len(self._rows)

    def read(self, tokens: Sequence[int], states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Read the text on."""
        self.forget()
        assert 1 <= len(tokens) == len(states) and self.length + len(tokens) <= self.capacity
        for token, feature in zip(tokens, self.features(states), strict=True):
            before = self._rows[-1] if self._rows else (-1,) * (self._order - 1) + (int(feature[-1]),)
            assert self._tail(feature) == before, f"row {self.length} is fed the feature of another place"
            self._rows.append((*before, token)[-self._order :])
        return self._answer(self._rows[-len(tokens) :])

    def grow(
        self, tokens: Sequence[int], features: torch.Tensor, parents: Sequence[int]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Read more rows of a tree after the text."""
        assert len(tokens) == len(features) == len(parents) and len(self._tree) + len(tokens) <= self.largest_step
        for token, feature, parent in zip(tokens, features, parents, strict=True):
            before = self._rows[-1] if parent < 0 else self._tree[parent]
            assert self._tail(feature) == before, "a guess is read with the feature of another one"
            self._tree.append((*before, token)[-self._order :])
        return self._answer(self._tree[-len(tokens) :])

    def forget(self) -> None:
        """Forget the tree."""
        self._tree = []

    def rewind(self, length: int) -> None:
        """Forget what is after `length`."""
        assert 0 <= length <= self.length
        self.forget()
        del self._rows[length:]

    def features(self, states: torch.Tensor) -> torch.Tensor:  # (n, taps * order) -> (n, order)
        """Return the tapped states, which are all the same here."""
        parts = states.split(self._order, 1)
        assert len(parts) == len(self._eagle.layers) and all(torch.equal(part, parts[0]) for part in parts)
        return parts[0]

    def logits(self, rows: torch.Tensor) -> torch.Tensor:  # (R, order) -> (R, draft vocabulary)
        """Return what follows each row."""
        return torch.stack([self._eagle.guess.logits([int(t) for t in row if t >= 0]) for row in rows.tolist()])

    def _tail(self, feature: torch.Tensor) -> tuple[int, ...]:
        return tuple(int(token) for token in feature.tolist())

    def _answer(self, rows: Sequence[tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
        both = torch.tensor(rows, dtype=torch.float64).view(len(rows), self._order)
        return both, both


def make(model: TableModel, mix: float = 0.6, order: int = 2, seed: int = 97) -> ToyEagle:
    """Make a drafter for `model`."""
    return ToyEagle(model, mix, order, seed)
