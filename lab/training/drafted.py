"""The draft vocabulary in training: the model's output layer over it, and the scores of drafts."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from decoding.types import JSON

from .backbone import Backbone
from .measures import overlap, rank_of

_LOGITS = 2**22  # in memory at a time
RANKS = 5


class DraftScores:
    """How good drafts are, in sums."""

    def __init__(self) -> None:
        self.loss = self.accepted = 0.0
        self.ranks, self.count = torch.zeros(RANKS), 0

    def to_json(self) -> dict[str, JSON]:
        """Return the mean loss; how often the one to five likeliest tokens hold the model's greedy choice; and how
        likely a token drawn from a draft would be accepted, the sum of min(p, q).
        """
        count = max(1, self.count)
        return {
            "loss": self.loss / count,
            "top": (self.ranks.cumsum(0) / count).tolist(),
            "acceptance": self.accepted / count,
        }


class DraftedTokens:
    """Some tokens of a model's vocabulary, or all of them."""

    def __init__(self, backbone: Backbone, ids: Tensor | None) -> None:  # (n,), ascending; None: all
        self._backbone, self._ids = backbone, None if ids is None else ids.to(backbone.device)
        self.head = self.narrow(backbone.model.get_output_embeddings().weight.detach(), 0)  # (n, H)
        self.count = len(self.head)

    @property
    def rows(self) -> int:
        """Count the rows of logits over these tokens that are in memory at a time."""
        return max(1, _LOGITS // self.count)

    def narrow(self, whole: Tensor, dim: int = -1) -> Tensor:
        """Select what belongs to these tokens."""
        return whole if self._ids is None else whole.index_select(dim, self._ids)

    def logits(self, hidden: Tensor, head: Tensor | None = None) -> Tensor:  # (N, H) -> (N, n) in float32
        """Apply the model's output layer, or `head`, (n, H), to rows after a final norm."""
        with self._backbone.cast():
            return functional.linear(hidden, self.head if head is None else head).float()

    def score(self, scores: DraftScores, logits: Tensor, whole: Tensor) -> None:  # (N, n), (N, V)
        """Add N drafts, compared with the model's logits; its greedy choice may be none of these tokens."""
        scores.loss += float(functional.cross_entropy(logits, self.narrow(whole).softmax(-1), reduction="sum"))
        scores.accepted += overlap(logits, self.narrow(whole.softmax(-1)))
        scores.ranks += self._ranks(logits, whole.argmax(-1))
        scores.count += len(logits)

    def _ranks(self, logits: Tensor, choice: Tensor) -> Tensor:  # (N, n), (N,) -> (5,)
        if self._ids is not None:
            where = torch.searchsorted(self._ids, choice).clamp(max=len(self._ids) - 1)
            listed = self._ids[where] == choice
            logits, choice = logits[listed], where[listed]
        return torch.bincount(rank_of(logits, choice).clamp(max=RANKS), minlength=RANKS + 1)[:RANKS].cpu()
