"""Rotates a step's queries and keys by their positions, and writes its keys and values into the cache."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import pad

from .cache import Cache
from .config import Shape
from .rope import RopeTables

Normalise = Callable[[torch.Tensor], torch.Tensor]  # (R, H) -> (R, H), not yet times the weight of the norm
Where = slice | torch.Tensor  # neighbouring rows, or those whose numbers a tensor (T,) holds on the device
# Rotates layer `index`: takes (T, heads + 2 kv_heads, D) and the weight of its norm of queries and keys,
# (heads + kv_heads, D) or None; writes keys and values to the cache, and returns queries (T, heads, D), contiguous.
StoreRows = Callable[[int, torch.Tensor, torch.Tensor | None], torch.Tensor]
# Makes a `Store` for a step, from the rows' positions in the tables and their slots in the cache.
StepRotation = Callable[[RopeTables, Where, Cache, Where], StoreRows]


def unfused(shape: Shape, normal: Normalise) -> StepRotation:
    """Rotate with torch's operations."""
    heads, size = shape.heads, shape.head_dim

    def rotation(tables: RopeTables, positions: Where, cache: Cache, slots: Where) -> StoreRows:
        cos, sin = (
            table[positions] if isinstance(positions, slice) else table.index_select(0, positions) for table in tables
        )  # (T, 1, D) each
        # Values are rotated by zero together with queries and keys, which saves a copy in every layer.
        turned, still = (-1, heads + shape.kv_heads, -1), (0, 0, 0, shape.kv_heads)
        cos = pad(cos.expand(turned), still, value=1.0)  # (T, heads + 2 kv_heads, D)
        sin = pad(sin.expand(turned), still)
        views = cache.data[:, :, slots].unbind(0) if isinstance(slots, slice) else ()

        def store(layer: int, qkv: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
            if weight is not None:
                qk, value = qkv.tensor_split((heads + shape.kv_heads,), 1)
                qkv = torch.cat((normal(qk.reshape(-1, size)).view_as(qk) * weight, value), 1)
            parts = qkv * cos, qkv.roll(size // 2, -1), sin  # the first, and the product of the others, are added
            pair = len(qkv), 2, -1, size
            pairs = [part[:, heads:].view(pair).transpose(0, 1) for part in parts]  # (2, T, kv_heads, D) each
            if isinstance(slots, slice):
                torch.addcmul(*pairs, out=views[layer])
            else:
                cache.data[layer].index_copy_(1, slots, torch.addcmul(*pairs))
            return torch.addcmul(*(part[:, :heads] for part in parts))

        return store

    return rotation


def fused(kernel: Callable[..., torch.Tensor]) -> StepRotation:
    """Rotate with our kernel, which reads positions and slots on the device."""

    def rotation(tables: RopeTables, positions: Where, cache: Cache, slots: Where) -> StoreRows:
        cos, sin = tables
        layers, at, into = cache.data.unbind(0), None, None
        if isinstance(positions, slice):
            cos, sin = cos[positions], sin[positions]
        else:
            at = positions
        if isinstance(slots, slice):
            layers = cache.data[:, :, slots].unbind(0)
        else:
            into = slots

        def store(layer: int, qkv: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
            return kernel(qkv, cos, sin, at, layers[layer], into, weight)

        return store

    return rotation
