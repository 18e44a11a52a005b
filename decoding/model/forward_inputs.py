"""The inputs of a forward pass that its layers share."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .attention import Span
from .rotation import StoreRows


@dataclass(frozen=True, slots=True)
class ForwardInputs:
    """The inputs of a forward pass over a tree of tokens after a cached text."""

    ids: torch.Tensor  # (T,)
    store: StoreRows
    spans: list[Span]  # one per layer


@dataclass(frozen=True, slots=True)
class ChainRows:
    """The adjacent rows of a chain, in place of a tree's `StepBuffer`."""

    ids: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    first: torch.Tensor  # (1,)
    seen: torch.Tensor
    ahead: int  # most rows between the stored text and these
