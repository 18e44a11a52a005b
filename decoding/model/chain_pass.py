"""Consecutive passes over a chain whose tokens only the device knows, to be recorded together."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import torch

from .captured import PassSpec, StoredText
from .forward_inputs import ChainRows
from .graphs import Outputs


@dataclass(frozen=True, slots=True)
class ChainPass:
    """The passes of one model after its stored text."""

    buffered: Callable[..., Outputs]  # `Decoder.buffered` of the model
    text: StoredText
    rows: int  # of all passes together

    @property
    def first(self) -> int:
        """Return the number of stored tokens."""
        return self.text.cache.length

    @property
    def layers(self) -> int:
        """Return the number of layers."""
        return len(self.text.cache.data)

    @property
    def key(self) -> Hashable:
        """Return a key that is equal for passes on the same addresses."""
        return weakref.ref(self.text.cache), self.text.tables, self.text.cut, self.rows

    def run(self, ids: torch.Tensor, first: torch.Tensor, ahead: int, spec: PassSpec) -> Outputs:  # (n,), (1,)
        """Read tokens `ahead` rows after the stored ones, whose number `first` only the device knows."""
        count = len(ids)
        positions = torch.arange(ahead, ahead + count, device=ids.device) + first
        seen = torch.ones(count, count, dtype=torch.bool, device=ids.device).tril()
        rows = ChainRows(ids, positions, positions, positions[:1], seen, ahead)
        return self.buffered(rows, None, self.text, spec)
