"""Layers whose products include the norm of their input, the gating and the residual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch

from .config import Shape
from .forward_inputs import ForwardInputs
from .weights import LayerWeights

if TYPE_CHECKING:
    from ..gpu.products import Product

FEW = 1  # rows: every program norms them again, which for more rows costs more than a kernel


class FusedLayers:
    """The layers of one model, with our kernels for all products."""

    def __init__(self, shape: Shape, layers: Sequence[LayerWeights]) -> None:
        self._shape, self._layers = shape, layers

    def forward(self, x: torch.Tensor, inputs: ForwardInputs, start: int, stop: int) -> torch.Tensor:  # (T, H)
        """Run the layers from `start` to `stop`, each in four kernels and those of attention."""
        shape = self._shape
        for index in range(start, stop):
            layer = self._layers[index]
            # Products, all four, since their kernels were chosen: `Linear` has no other that norms and adds.
            qkv_of, out, gate_up, down = (cast("Product", each) for each in layer.products)
            qkv = qkv_of.normed(x, layer.attention_norm, shape.eps)
            qkv = qkv.view(-1, shape.heads + 2 * shape.kv_heads, shape.head_dim)
            query = inputs.store(index, qkv, layer.qk_norm)
            x = out.added(inputs.spans[index].attend(index, query), x)
            x = down.added(gate_up.normed(x, layer.mlp_norm, shape.eps, gated=True), x)
        return x
