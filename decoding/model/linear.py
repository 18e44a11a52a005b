"""Matrix products of a step: the same numbers as `F.linear`, faster if the processor prefers packed weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch.nn import functional

from ..gpu.choice import OVERLAP, chosen
from ..native.products import NativeProduct, fits, has_native

Linear = Callable[[torch.Tensor], torch.Tensor]  # (T, inputs) -> (T, outputs)


def linear(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:  # (outputs, inputs), (outputs,)
    """Make a linear layer of `weight`. If the CPU prefers a packed layout, only a packed copy is stored.

    `F.linear` packs the weight again in every call, which costs more than the product of few rows. Compiled code comes
    first, because there a row's numbers do not depend on how many rows are multiplied.
    """
    if fits(weight):
        return NativeProduct(weight, bias)
    if packs(weight.device, weight.dtype):
        return _packed(weight, bias)
    kernels = chosen(weight.device, weight.dtype)
    if "products" in kernels:
        from ..gpu.products import Product

        return Product(weight, bias, overlap=OVERLAP in kernels)

    def plain(x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, weight, bias)

    return plain


def packs(device: torch.device, dtype: torch.dtype) -> bool:
    """Return True if linear layers keep a packed copy of their weight."""
    return has_native(device, dtype) or (device.type == "cpu" and _packs(dtype))


def _packed(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
    product = torch.ops.mkldnn._linear_pointwise.default
    with torch.inference_mode():
        layout = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None)

    def packed(x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = product(x, layout, bias, "none", [], "")
        return y

    return packed


@cache
def _packs(dtype: torch.dtype) -> bool:
    """Return True if this build and processor pack weights of `dtype`."""
    if dtype not in (torch.float32, torch.bfloat16):
        return False
    try:
        with torch.inference_mode():
            _packed(torch.ones(16, 16, dtype=dtype), None)(torch.ones(2, 16, dtype=dtype))
    except (AttributeError, RuntimeError):
        return False
    return True
