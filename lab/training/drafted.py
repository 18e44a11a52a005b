"""The tokens that a drafter may draft, as it learns: the model's output layer over them, and how its guesses rank."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .backbone import Backbone
from .measures import overlap, rank_of

_LOGITS = 2**22  # in memory at a time
RANKS = 5


class DraftedTokens:
    """Some tokens of a model's vocabulary, or all of them."""

    def __init__(self, backbone: Backbone, ids: Tensor | None) -> None:  # (n,), ascending; None: all
        self._backbone, self._ids = backbone, None if ids is None else ids.to(backbone.device)
        self.head = self.narrow(backbone.model.get_output_embeddings().weight.detach(), 0)  # (n, H)
        self.count = len(self.head)

    @property
    def rows(self) -> int:
        """Rows of logits over these tokens that are in memory at a time."""
        return max(1, _LOGITS // self.count)

    def narrow(self, whole: Tensor, dim: int = -1) -> Tensor:
        """What belongs to these tokens, of what belongs to all."""
        return whole if self._ids is None else whole.index_select(dim, self._ids)

    def logits(self, hidden: Tensor, head: Tensor | None = None) -> Tensor:  # (N, H) -> (N, n) in float32
        """What the model's output layer says of rows behind a final norm; or what `head`, (n, H), says."""
        with self._backbone.cast():
            return functional.linear(hidden, self.head if head is None else head).float()

    def score(self, logits: Tensor, whole: Tensor) -> tuple[float, float, Tensor]:  # (N, n), (N, V)
        """Of N drafts against the model's logits, in sums: the loss over these tokens; how likely a token drawn from
        a draft would be accepted, the sum of min(p, q); and how often the model's greedy choice, which may be none of
        these, has each of the first ranks.
        """
        p = whole.softmax(-1)
        loss = functional.cross_entropy(logits, self.narrow(whole).softmax(-1), reduction="sum")
        return float(loss), overlap(logits, self.narrow(p)), self._ranks(logits, whole.argmax(-1))

    def _ranks(self, logits: Tensor, choice: Tensor) -> Tensor:  # (N, n), (N,) -> (5,)
        if self._ids is not None:
            where = torch.searchsorted(self._ids, choice).clamp(max=len(self._ids) - 1)
            known = self._ids[where] == choice
            logits, choice = logits[known], where[known]
        return torch.bincount(rank_of(logits, choice).clamp(max=RANKS), minlength=RANKS + 1)[:RANKS].cpu()
