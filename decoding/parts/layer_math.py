"""The arithmetic shared by the layers of an adapter and of an EAGLE-3 drafter, for rows of any rank."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..model.rope import RopeTables

# The matrix products of the layer, and the weights that each multiplies by.
PRODUCTS = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "out": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}


def norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:  # (..., H)
    """Divide rows by their root mean square, and scale them."""
    wide = x if x.dtype == torch.float64 else x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rotated(x: torch.Tensor, tables: RopeTables) -> torch.Tensor:  # (..., T, heads, D)
    """Rotate queries or keys to their positions."""
    return x * tables.cos + x.roll(x.shape[-1] // 2, -1) * tables.sin


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    seen: torch.Tensor | None,
    kernel: Callable[..., torch.Tensor],
) -> torch.Tensor:  # (B, T, heads, D), (B, P, kv_heads, D) twice, (T, P) or (B, T, P) -> (B, T, heads * D)
    """Attend, with the query heads that share a key/value head as further queries of that head."""
    (batch, rows, heads, size), (_, positions, kv_heads, _) = query.shape, key.shape
    packed = query.reshape(batch, rows, kv_heads, -1, size).transpose(1, 2).flatten(2, 3)  # (B, kv_heads, T * R, D)
    if seen is not None:
        seen = seen.repeat_interleave(heads // kv_heads, -2).view(-1, 1, packed.shape[2], positions)
    mixed = kernel(packed, key.transpose(1, 2), value.transpose(1, 2), seen)
    return mixed.reshape(batch, kv_heads, rows, -1, size).transpose(1, 2).flatten(2)
