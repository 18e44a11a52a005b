"""Converts weights from transformers' names and layouts to the decoder's: fused, reordered, packed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from .config import Shape
from .linear import Linear, linear
from .precision import Precision
from .quantised import quantised
from .rope import halves

Get = Callable[[str], torch.Tensor]  # a weight by its transformers name
Multiply = Callable[[torch.Tensor, torch.Tensor | None], Linear]  # what multiplies by a weight, and adds a bias


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer's weights."""

    attention_norm: torch.Tensor  # (H,)
    qkv: Linear
    qk_norm: torch.Tensor | None  # (heads + kv_heads, D)
    out: Linear
    mlp_norm: torch.Tensor  # (H,)
    gate_up: Linear
    down: Linear

    @property
    def products(self) -> tuple[Linear, Linear, Linear, Linear]:
        """List the products, in the order of the pass."""
        return self.qkv, self.out, self.gate_up, self.down


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    """All weights of a model."""

    embedding: torch.Tensor  # (V, H)
    layers: tuple[LayerWeights, ...]
    norm: torch.Tensor  # (H,)
    head: Linear
    precision: Precision


def assemble(
    shape: Shape, get: Get, tied: bool, progress: Callable[[float], None], *, int8: bool = False
) -> DecoderWeights:
    """Assemble a model from its named weights, read one by one; `int8` quantises its matrices."""
    multiply = quantised if int8 else linear
    embedding = get("model.embed_tokens.weight")
    layers = []
    for index in range(shape.layers):
        layers.append(read_layer(shape, get, f"model.layers.{index}.", multiply))
        progress((index + 1) / shape.layers)
    last, norm = embedding if tied else get("lm_head.weight"), get("model.norm.weight")
    head = multiply(last.to(norm.device), None)
    return DecoderWeights(embedding, tuple(layers), norm, head, Precision(norm.dtype, int8))


def read_layer(shape: Shape, get: Get, at: str, multiply: Multiply = linear) -> LayerWeights:
    """Read the layer whose weight names begin with `at`."""
    fused = shape.family == "phi3"
    swap, order = _query_order(shape), halves(shape)

    def stacked(names: list[str], kind: str) -> torch.Tensor:
        return torch.cat([get(f"{at}{name}.{kind}") for name in names])

    def product(names: list[str], bias: bool, arrange: Callable[[torch.Tensor], torch.Tensor]) -> Linear:
        return multiply(arrange(stacked(names, "weight")), arrange(stacked(names, "bias")) if bias else None)

    def arrange_qkv(stack: torch.Tensor) -> torch.Tensor:  # (heads + 2 kv_heads) * D rows
        heads = stack.reshape(-1, shape.head_dim, *stack.shape[1:])
        query, key, value = heads.tensor_split((shape.heads, shape.heads + shape.kv_heads))
        return torch.cat((query[swap][:, order], key[:, order], value)).flatten(0, 1)

    attention = ["qkv_proj"] if fused else ["q_proj", "k_proj", "v_proj"]
    mlp = ["gate_up_proj"] if fused else ["gate_proj", "up_proj"]
    out = get(f"{at}self_attn.o_proj.weight").view(-1, shape.heads, shape.head_dim)[:, swap].flatten(1)
    qk_norm = None
    if shape.qk_norm:
        query, key = (get(f"{at}self_attn.{name}_norm.weight")[order] for name in "qk")
        qk_norm = torch.cat((query.expand(shape.heads, -1), key.expand(shape.kv_heads, -1)))
    return LayerWeights(
        attention_norm=get(f"{at}input_layernorm.weight"),
        qkv=product([f"self_attn.{name}" for name in attention], shape.qkv_bias, arrange_qkv),
        qk_norm=qk_norm,
        out=multiply(out, get(f"{at}self_attn.o_proj.bias") if shape.out_bias else None),
        mlp_norm=get(f"{at}post_attention_layernorm.weight"),
        gate_up=product([f"mlp.{name}" for name in mlp], shape.mlp_bias, lambda stack: stack),
        down=product(["mlp.down_proj"], shape.mlp_bias, lambda stack: stack),
    )


def _query_order(shape: Shape) -> list[int]:
    """Order query heads with the kv head as the fast index, as `attend` reads them; transformers has it slow."""
    return [kv * shape.repeats + repeat for repeat in range(shape.repeats) for kv in range(shape.kv_heads)]
