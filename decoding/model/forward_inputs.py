"""The inputs of a forward pass that all layers share: where rows are written, which rows they see, their rotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import torch

from ..tree import is_chain
from .attention import Attention
from .cache import Cache
from .config import Shape
from .queued_tree import Parents, QueuedTree, depths_on
from .rope import RopeTables
from .rotation import StepRotation, Where
from .upload import on_device

if TYPE_CHECKING:
    from .captured import StepBuffer
    from .upload import Tokens


@dataclass(frozen=True, slots=True)
class ChainRows:
    """Neighbouring rows of a chain, as `StepBuffer` holds those of a tree."""

    ids: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    first: torch.Tensor  # (1,)
    seen: torch.Tensor
    ahead: int  # rows at most between the stored text and these


class ForwardInputs:
    """The inputs of a forward pass over a tree of tokens behind a cached text."""

    __slots__ = ("ids", "spans", "store")

    def __init__(
        self,
        tokens: Tokens,
        parents: Parents,
        cache: Cache,
        tables: RopeTables,
        shape: Shape,
        attention: Attention,
        rotation: StepRotation,
        ahead: int = 0,
    ) -> None:
        """`ahead` rows of a chain stand between the stored tokens and this tree."""
        device, first, rows = cache.data.device, cache.length + ahead, len(parents)
        self.ids = on_device(tokens, device)  # (T,)
        chain = not isinstance(parents, QueuedTree) and is_chain(parents)
        positions: Where = slice(first, first + rows) if chain else depths_on(parents, device) + first
        self.store = rotation(tables, positions, cache, cache.places(first, first + rows))
        kinds = {window: attention.span(cache, first, parents, window) for window in set(shape.windows)}
        self.spans = [kinds[window] for window in shape.windows]  # one per layer

    @classmethod
    def buffered(
        cls,
        buffer: StepBuffer | ChainRows,
        cut: int | None,
        cache: Cache,
        tables: RopeTables,
        shape: Shape,
        attention: Attention,
        rotation: StepRotation,
    ) -> Self:
        """The inputs of a pass that is recorded: all that differs from step to step stands in a buffer.

        The first `cut` slots are the prefix that all rows see; None: the device knows how many they are.
        """
        made = cls.__new__(cls)
        made.ids = buffer.ids
        made.store = rotation(tables, buffer.positions, cache, buffer.slots)
        made.spans = [attention.buffered(cache, cut, buffer.first, buffer.seen, buffer.ahead)] * shape.layers
        return made
