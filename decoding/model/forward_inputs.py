"""The inputs of a forward pass that all layers share: where rows are written, which rows they see, their rotation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch.nn.functional import pad

from ..tree import is_chain
from .attention import Attention
from .cache import Cache
from .config import Shape
from .queued_tree import Parents, QueuedTree, depths_on
from .rope import Tables
from .upload import on_device

if TYPE_CHECKING:
    from .captured import StepBuffer
    from .session import Tokens


class ForwardInputs:
    """The inputs of a forward pass over a tree of tokens behind a cached text."""

    __slots__ = ("_cache", "_cos", "_heads", "_places", "_sin", "_views", "ids", "spans")

    def __init__(
        self,
        tokens: Tokens,
        parents: Parents,
        cache: Cache,
        tables: Tables,
        shape: Shape,
        attention: Attention,
        ahead: int = 0,
    ) -> None:
        """`ahead` rows of a chain stand between the stored tokens and this tree."""
        device, first, rows = cache.data.device, cache.length + ahead, len(parents)
        self.ids = on_device(tokens, device)  # (T,)
        if not isinstance(parents, QueuedTree) and is_chain(parents):
            cos, sin = tables.cos[first : first + rows], tables.sin[first : first + rows]
        else:
            positions = depths_on(parents, device) + first
            cos, sin = tables.cos.index_select(0, positions), tables.sin.index_select(0, positions)
        self._rotate(cos, sin, shape)
        self._cache, self._places = cache, cache.places(first, first + rows)
        self._views = cache.data[:, :, self._places].unbind(0) if isinstance(self._places, slice) else ()
        kinds = {window: attention.span(cache, first, parents, window) for window in set(shape.windows)}
        self.spans = [kinds[window] for window in shape.windows]  # one per layer

    @classmethod
    def buffered(
        cls, buffer: StepBuffer, cut: int, cache: Cache, tables: Tables, shape: Shape, attention: Attention
    ) -> Self:
        """The inputs of a pass that is recorded: all that differs from step to step stands in a buffer.

        The first `cut` slots are the prefix that all rows see.
        """
        made = cls.__new__(cls)
        made.ids, made._cache, made._places, made._views = buffer.ids, cache, buffer.slots, ()
        cos, sin = (table.index_select(0, buffer.positions) for table in tables)
        made._rotate(cos, sin, shape)
        made.spans = [attention.buffered(cache, cut, buffer.before, buffer.seen)] * shape.layers
        return made

    def _rotate(self, cos: torch.Tensor, sin: torch.Tensor, shape: Shape) -> None:  # (T, 1, D) each
        # Values go through the rotation with queries and keys, turned by nothing: that saves a copy in every layer.
        turned, still = (-1, shape.heads + shape.kv_heads, -1), (0, 0, 0, shape.kv_heads)
        self._cos = pad(cos.expand(turned), still, value=1.0)  # (T, heads + 2 kv_heads, D)
        self._sin = pad(sin.expand(turned), still)
        self._heads = shape.heads

    def store(self, layer: int, qkv: torch.Tensor) -> torch.Tensor:  # (T, heads + 2 kv_heads, D) -> (T, heads, D)
        """Rotate a layer's rows; keys and values go behind the text, the queries come back, contiguous."""
        heads, half = self._heads, qkv.shape[2] // 2
        parts = qkv * self._cos, qkv.roll(half, -1), self._sin  # the first, and the product of the others, are added
        shape = len(qkv), 2, -1, qkv.shape[2]
        pairs = [part[:, heads:].view(shape).transpose(0, 1) for part in parts]  # (2, T, kv_heads, D) each
        if isinstance(self._places, slice):
            torch.addcmul(*pairs, out=self._views[layer])
        else:
            self._cache.data[layer].index_copy_(1, self._places, torch.addcmul(*pairs))
        return torch.addcmul(*(part[:, :heads] for part in parts))
