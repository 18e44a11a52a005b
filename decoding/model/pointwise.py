"""A layer's operations between its products: torch's, or kernels of our own that combine several of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch.nn.functional import rms_norm, silu

from ..gpu.choice import OVERLAP
from .attention import Merge, merge
from .config import Shape
from .rotation import Normalise, StepRotation, fused, unfused

# Takes rows (T, H), a summand or None, and a weight (H,); returns the sum, and the normed sum.
AddNorm = Callable[[torch.Tensor, torch.Tensor | None, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True, slots=True)
class Pointwise:
    """The operations of one model."""

    norm: AddNorm
    rotation: StepRotation
    swiglu: Callable[[torch.Tensor], torch.Tensor]  # (T, 2 * inner) -> (T, inner)
    merge: Merge


def pointwise(shape: Shape, device: torch.device, dtype: torch.dtype, kernels: frozenset[str]) -> Pointwise:
    """Choose the operations of a model. Kernels are imported here, because not every machine has Triton."""
    operations, overlap = _by_torch(shape, device, dtype), OVERLAP in kernels
    if "norm" in kernels:
        from ..gpu.norm import norm as add_norm

        operations = replace(operations, norm=partial(add_norm, eps=shape.eps, overlap=overlap))
    if "rotary" in kernels:
        from ..gpu.rotary import rotary

        operations = replace(operations, rotation=fused(partial(rotary, eps=shape.eps, overlap=overlap)))
    if "swiglu" in kernels:
        from ..gpu.swiglu import swiglu as fused_swiglu

        operations = replace(operations, swiglu=partial(fused_swiglu, overlap=overlap))
    if "merge" in kernels:
        from ..gpu.merge import merge_parts

        operations = replace(operations, merge=partial(merge_parts, overlap=overlap))
    return operations


def total(x: torch.Tensor, delta: torch.Tensor | None) -> torch.Tensor:
    """Add `delta` to `x`, if there is one."""
    return x if delta is None else x + delta


def swiglu(gate_up: torch.Tensor) -> torch.Tensor:  # (T, 2 * inner) -> (T, inner)
    """Multiply the second half of every row by the activation of the first."""
    gate, up = gate_up.chunk(2, -1)
    return silu(gate).mul_(up)


def make_norm(eps: float, device: torch.device, dtype: torch.dtype) -> Normalise:
    """Make the division by the root mean square, for rows of that dtype on that device.

    It computes in float32, and rounds before the weight is applied, as in transformers.
    """
    if device.type != "cpu":  # one fused kernel there, but seven operations on a CPU
        return lambda x: rms_norm(x, x.shape[1:], eps=eps)
    inner = torch.float64 if dtype == torch.float64 else torch.float32
    start = torch.full((1,), eps, dtype=inner)
    mean: dict[int, torch.Tensor] = {}  # by width: the model's, and a head's where queries and keys are normed

    def by_product(x: torch.Tensor) -> torch.Tensor:
        width = x.shape[1]
        if width not in mean:
            mean[width] = torch.full((width, 1), 1.0 / width, dtype=inner)
        wide = x.to(inner)
        # Mean squares and eps in one operation: a product costs a third of a reduction over so few numbers.
        scale = torch.addmm(start, wide * wide, mean[width]).rsqrt_()  # (R, 1)
        return (wide * scale).to(dtype)

    return by_product


def _by_torch(shape: Shape, device: torch.device, dtype: torch.dtype) -> Pointwise:
    normal = make_norm(shape.eps, device, dtype)

    def add_norm(
        x: torch.Tensor, delta: torch.Tensor | None, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = total(x, delta)
        return x, normal(x) * weight

    return Pointwise(add_norm, unfused(shape, normal), swiglu, merge)
