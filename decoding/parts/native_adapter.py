"""An adapter in compiled code: with attention, it is a layer like the decoder's, and its norm the final one.

Calls of torch between the model's layers cost more than their arithmetic: torch's threads wait for the next call by
spinning on the cores that run the compiled layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from ..model.cache import Cache
from ..model.native_layers import NativeInputs, NativeLayers, suits
from ..model.rope import RopeTables
from ..model.weights import read_layer

if TYPE_CHECKING:
    from ..model.config import Shape
    from .adapter_config import AdapterConfig

_NOTHING = 32  # width of the feed-forward part, all zeros, of an adapter that has none


class NativeAdapter:
    """The layer and its norm."""

    def __init__(self, shape: Shape, layers: NativeLayers) -> None:
        self._shape, self._layers = shape, layers

    def read(
        self, hidden: torch.Tensor, parents: tuple[int, ...], cache: Cache, tables: RopeTables
    ) -> torch.Tensor:  # (n, H) -> (n, H)
        """Run the layer over a tree after the cached rows, and write the tree's keys and values to the cache."""
        step = NativeInputs([0] * len(hidden), parents, cache, tables, self._shape)
        x = hidden.clone(memory_format=torch.contiguous_format)
        return self._layers.through(x, step)


def native_adapter(config: AdapterConfig, weights: Mapping[str, torch.Tensor], shape: Shape) -> NativeAdapter | None:
    """Make the adapter in compiled code for a model of that shape; None if that cannot run it."""
    if "self_attn.q_proj.weight" not in weights:
        return None
    wide = config.intermediate if "mlp.down_proj.weight" in weights else _NOTHING
    layer_shape = replace(
        shape,
        family="llama",
        layers=1,
        intermediate=wide,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        rotary=config.head_dim,
        eps=config.eps,
        windows=(config.window or None,),
        qkv_bias=False,
        out_bias=False,
        mlp_bias=False,
        qk_norm=False,
    )

    def get(name: str) -> torch.Tensor:
        if name in weights:
            return weights[name]
        missing = {"mlp.down_proj.weight": (shape.hidden, wide), "post_attention_layernorm.weight": (shape.hidden,)}
        return weights["norm.weight"].new_zeros(missing.get(name, (wide, shape.hidden)))

    layers = (read_layer(layer_shape, get, ""),)
    if not suits(layer_shape, layers):
        return None
    return NativeAdapter(layer_shape, NativeLayers(layer_shape, layers, weights["norm.weight"]))
