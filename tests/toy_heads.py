"""Make heads for table models that know the language well, but not perfectly."""

from __future__ import annotations

from functools import lru_cache

import torch

from decoding.model.table import TableModel
from decoding.parts.medusa_tree import Accuracies
from decoding.ranking import likeliest, ranked

from .noise import noise


class ToyHeads:
    """Head k returns the model's logits k tokens further on if it went on greedily, mixed with noise."""

    about = "toy heads"

    def __init__(self, model: TableModel, count: int, mix: float) -> None:
        assert 0.0 < mix <= 1.0, "zero times a forbidden token's logit is no number"
        self.count = count
        self.accuracies: Accuracies | None = None
        self._model, self._mix = model, mix
        self._cached = lru_cache(maxsize=8192)(self._rows)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:  # (order,) last tokens, -1 where there are fewer -> (K, V)
        """Return every head's logits."""
        return self._cached(tuple(int(token) for token in hidden.tolist() if token >= 0))

    def top(self, hidden: torch.Tensor, ranks: int) -> torch.Tensor:  # (K, ranks)
        """Return every head's likeliest tokens, the best first."""
        return ranked(self.logits(hidden), ranks)

    def _rows(self, tail: tuple[int, ...]) -> torch.Tensor:
        text, rows = list(tail), list[torch.Tensor]()
        for head in range(1, self.count + 1):
            text += likeliest(self._model.logits(text)[None])
            error = 1.5 * noise(head, tail, self._model.card.vocabulary)
            rows.append(self._mix * self._model.logits(text) + (1 - self._mix) * error)
        return torch.stack(rows)


def make(model: TableModel, count: int = 4, mix: float = 0.8) -> ToyHeads:
    """Make heads for a table model; with a mix of 1 they are always right about a greedy run."""
    return ToyHeads(model, count, mix)
