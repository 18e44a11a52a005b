"""The arithmetic shared by the layers of an adapter and of drafters on features, for rows of any rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.nn.functional import silu

from ..model.config import Shape
from ..model.linear import Linear
from ..model.rope import RopeTables
from .part_files import NamedWeights

MakeProduct = Callable[[torch.Tensor, torch.Tensor | None], Linear]  # a linear layer of weight and bias

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


class FeatureLayers:
    """The layers of a drafter on features, for any number of leading dimensions."""

    def __init__(self, shape: Shape, weights: NamedWeights, product: MakeProduct) -> None:
        self._shape, self._weights, self._product = shape, weights, product
        self._fc = self._product_of(["fc"])
        self._layers = [
            {key: self._product_of([f"layers.{layer}.{stem}" for stem in stems]) for key, stems in PRODUCTS.items()}
            for layer in range(shape.layers)
        ]

    def split(
        self, qkv: torch.Tensor, turn: RopeTables, layer: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return queries, keys and values (..., T, heads, D), normed if the layers norm them, and rotated."""
        shape = self._shape
        heads = qkv.view(*qkv.shape[:-1], -1, shape.head_dim)
        query, key, value = heads.tensor_split((shape.heads, shape.heads + shape.kv_heads), -2)
        if shape.qk_norm:
            attention = f"layers.{layer}.self_attn"
            query, key = self._norm(query, f"{attention}.q_norm"), self._norm(key, f"{attention}.k_norm")
        return rotated(query, turn).to(value.dtype), rotated(key, turn).to(value.dtype), value

    def _feed_forward(self, x: torch.Tensor, layer: int = 0) -> torch.Tensor:  # (..., H)
        """Add the feed-forward part."""
        products = self._layers[layer]
        gate, up = products["gate_up"](self._norm(x, f"layers.{layer}.post_attention_layernorm")).chunk(2, -1)
        return x + products["down"](silu(gate) * up)

    def _product_of(self, names: Sequence[str]) -> Linear:
        """Make one product of the weights and biases of several for the same rows."""
        weights = self._weights
        biases = [weights[f"{name}.bias"] for name in names if f"{name}.bias" in weights]
        return self._product(
            torch.cat([weights[f"{name}.weight"] for name in names]), torch.cat(biases) if biases else None
        )

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return norm(x, self._weights[f"{name}.weight"], self._shape.eps)
