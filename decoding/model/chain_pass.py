"""Passes over a chain whose tokens only the device knows, one behind the other, to be recorded together."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from .captured import Outputs, Part

if TYPE_CHECKING:
    from .cache import Cache
    from .decoder import Decoder
    from .rope import Tables


@dataclass(frozen=True, slots=True)
class ChainRows:
    """Neighbouring rows of a chain, as `StepBuffer` holds those of a tree."""

    ids: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    first: torch.Tensor  # (1,)
    seen: torch.Tensor
    ahead: int  # rows at most between the stored text and these


@dataclass(frozen=True, slots=True)
class ChainPass:
    """The passes of one model behind a text that it has stored."""

    model: Decoder
    cache: Cache
    tables: Tables
    first: int  # tokens stored
    rows: int  # of all passes together

    @property
    def cut(self) -> int | None:
        """The prefix that these passes are recorded for; None: they serve every text."""
        return self.model.cut(self.first)

    @property
    def key(self) -> Hashable:
        """Equal for passes on the same addresses."""
        return id(self.tables.cos), self.cut, self.rows

    def run(self, ids: torch.Tensor, first: torch.Tensor, ahead: int, part: Part) -> Outputs:  # (n,), (1,)
        """Read tokens `ahead` rows behind the `first` stored ones; that number only the device knows."""
        count = len(ids)
        places = torch.arange(ahead, ahead + count, device=ids.device) + first
        seen = torch.ones(count, count, dtype=torch.bool, device=ids.device).tril()
        rows = ChainRows(ids, places, places, places[:1], seen, ahead)
        return self.model.buffered(rows, None, self.cache, self.tables, self.cut, part)


@dataclass(frozen=True, slots=True)
class Ahead:
    """A chain that a device can write as one graph."""

    key: Hashable
    numbers: tuple[float, ...]  # what differs from step to step
    tensors: tuple[torch.Tensor, ...]
    # Of these numbers and tensors on the device: what follows the tokens so far, (n,) -> (1, V); and what comes out
    # beside the chain, once it is written.
    begin: Callable[..., tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[torch.Tensor], Outputs]]]
    done: Callable[[int], None]  # what the host notes when so many tokens have been written
