"""Layers in which products do what comes before and after them: norm their input, gate, add the residual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .config import Shape
from .forward_inputs import ForwardInputs
from .weights import LayerWeights

if TYPE_CHECKING:
    from ..gpu.products import Product

FEW = 1  # rows: every program norms them again, which costs more than a kernel where they are more


class FusedLayers:
    """The layers of one model, all of whose products are kernels of our own."""

    def __init__(self, shape: Shape, layers: Sequence[LayerWeights]) -> None:
        self._shape, self._layers = shape, [_Layer(layer) for layer in layers]

    def forward(self, x: torch.Tensor, step: ForwardInputs, start: int, stop: int) -> torch.Tensor:  # (T, H)
        """Run the layers from `start` to `stop` in four kernels each, beside those of attention."""
        shape = self._shape
        for index in range(start, stop):
            layer = self._layers[index]
            qkv = layer.qkv.normed(x, layer.attention_norm, shape.eps)
            qkv = qkv.view(-1, shape.heads + 2 * shape.kv_heads, shape.head_dim)
            query = step.store(index, qkv, layer.qk_norm)
            x = layer.out.added(step.spans[index].attend(index, query), x)
            x = layer.down.added(layer.gate_up.normed(x, layer.mlp_norm, shape.eps, gated=True), x)
        return x


class _Layer:
    """One layer's weights."""

    def __init__(self, layer: LayerWeights) -> None:
        self.attention_norm, self.qk_norm, self.mlp_norm = layer.attention_norm, layer.qk_norm, layer.mlp_norm
        self.qkv, self.out, self.gate_up, self.down = map(_own, (layer.qkv, layer.out, layer.gate_up, layer.down))


def _own(product: object) -> Product:
    from ..gpu.products import Product

    assert isinstance(product, Product)
    return product
