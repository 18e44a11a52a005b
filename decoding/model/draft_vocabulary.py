"""The tokens that a drafter may draft: common ones only, so that it multiplies fewer rows of the output layer.

The output layer is a fifth of a small model and nearly all of a tiny one, and a drafter reads all of it for every
token, although most of its rows are never drafted. The target still writes its own text, rare tokens included. Zhao et
al., 2025, arXiv 2502.14856 (FR-Spec).
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from . import quiet
from .linear import Linear, linear


class DraftVocabulary:
    """The draftable tokens of a vocabulary of `size`."""

    def __init__(self, ids: torch.Tensor, size: int, device: torch.device | str = "cpu") -> None:  # (n,), of the host
        self.listed: list[int] = ids.tolist()
        self.ids, self.size, self.members = ids.to(device), size, frozenset(self.listed)
        digest = hashlib.sha256(np.array(self.listed, np.int64).tobytes())
        self.about = f"{len(self.listed)} tokens {digest.hexdigest()[:12]}"

    def rows(self, weight: torch.Tensor) -> torch.Tensor:  # (..., V, H) -> (..., n, H)
        """Select the rows of an output layer that belong to these tokens."""
        return weight.index_select(-2, self.ids)

    def head(self, weight: torch.Tensor) -> Linear:  # (V, H)
        """Make an output layer with these rows only."""
        return linear(self.rows(weight), None)

    def widen(self, logits: torch.Tensor) -> torch.Tensor:  # (..., n) -> (..., V)
        """Return logits over the whole vocabulary, -inf for every other token."""
        wide = logits.new_empty((*logits.shape[:-1], self.size))
        for piece in torch.split(wide.view(-1), quiet.MOST) if wide.device.type == "cpu" else (wide,):
            piece.fill_(-torch.inf)
        return wide.index_copy_(-1, self.ids, logits)
