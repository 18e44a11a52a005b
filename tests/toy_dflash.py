"""A DFlash drafter for table models, whose hidden states are the last few tokens."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import numpy as np
import torch

from decoding.model.draft_vocabulary import DraftVocabulary
from decoding.model.table import TableModel


class ToyDFlash:
    """Agrees with the target to the degree of `mix`; cannot say every fifth token."""

    layers, about = (0, 2), "toy drafter of blocks"

    def __init__(self, target: TableModel, mix: float, order: int, block: int, seed: int) -> None:
        self.target_order, vocabulary = target.order, target.card.vocabulary
        ids = [token for token in range(vocabulary) if vocabulary < 5 or token % 5 != 4]
        self.vocabulary = None if len(ids) == vocabulary else DraftVocabulary(torch.tensor(ids), vocabulary)
        self.ids = ids
        self.config = SimpleNamespace(block=block, guesses=block - 1, from_anchor=False, mask=0)

        def rule(key: tuple[int, ...]) -> torch.Tensor:
            error = torch.from_numpy(np.random.default_rng([seed, *key]).normal(size=vocabulary))
            return (mix * target.logits(key) + (1 - mix) * 1.5 * error)[ids]

        self.guess = TableModel(rule, order, vocabulary)
        self.sessions = deque[ToySession](maxlen=16)  # that were opened last, for tests to look at

    def open(self, capacity: int, largest_step: int) -> ToySession:
        """Open a session; the positions of features are asserted and not merely counted."""
        self.sessions.append(ToySession(self, capacity, largest_step))
        return self.sessions[-1]


class ToySession:
    """Reads features, each of the token after the last; then fills blocks as if its likeliest guesses were right."""

    def __init__(self, drafter: ToyDFlash, capacity: int, largest_step: int) -> None:
        self.capacity, self.largest_step = capacity, largest_step
        self._drafter = drafter
        self._text: list[tuple[int, ...]] = []  # the last tokens, up to each token of the text

    @property
    def length(self) -> int:
        """Count the tokens whose features were read."""
        return len(self._text)

    def read(self, states: torch.Tensor) -> None:
        """Read the text on."""
        order = self._drafter.target_order
        one, *others = states.split(order, 1)
        assert len(others) == len(self._drafter.layers) - 1 and all(torch.equal(one, other) for other in others)
        assert self.length + len(states) <= self.capacity
        for row in one.tolist():
            tail = tuple(int(token) for token in row)
            before = self._text[-1] if self._text else (-1,) * order
            assert tail[:-1] == before[1:], f"feature {self.length} is that of another place"
            self._text.append(tail)

    def rewind(self, length: int) -> None:
        """Forget what is after `length`."""
        assert 0 <= length <= self.length
        del self._text[length:]

    def fill(self, root: int, guesses: int) -> torch.Tensor:
        """Return the last tokens before each guess, if all guesses before it are the likeliest ones."""
        assert 1 <= guesses <= self._drafter.config.guesses
        rows, tail = list[tuple[int, ...]](), [*self._text[-1], root]
        for _ in range(guesses):
            rows.append(tuple(tail[-self._drafter.target_order :]))
            tail.append(self._drafter.ids[int(self._after(rows[-1]).argmax())])
        return torch.tensor(rows, dtype=torch.float64)

    def logits(self, rows: torch.Tensor) -> torch.Tensor:  # (R, order) -> (R, draft vocabulary)
        """Return what follows each row."""
        return torch.stack([self._after([int(token) for token in row]) for row in rows.tolist()])

    def _after(self, tail: tuple[int, ...] | list[int]) -> torch.Tensor:
        return self._drafter.guess.logits([token for token in tail if token >= 0])


def make(model: TableModel, mix: float = 0.7, order: int = 2, block: int = 6, seed: int = 89) -> ToyDFlash:
    """Make a drafter for `model`."""
    return ToyDFlash(model, mix, order, block, seed)
