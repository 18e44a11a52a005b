"""Products with weights of eight bits: half the memory of bfloat16, and another model than the one that was rounded.

Every output has a scale, so that the largest weight of its row is 127. Torch's kernel for such weights reads them once
for every row that is multiplied. For more rows they are widened first, which moves five times their bytes: read once at
one byte each, then written and read again at two. So up to `FEW` rows go through the kernel (an output layer of 49152 x
576 on two cores: one row 8 ms against 48, four rows 8 against 48, 64 rows 99 against 30). On CUDA our kernel widens the
weights as it reads them, which on an H200 is 2 to 11 times as fast as widening them first.
"""

from __future__ import annotations

import torch
from torch.nn.functional import linear

from ..gpu.choice import OVERLAP, chosen
from .linear import Linear

FEW = 4  # rows
_LARGEST = 127  # symmetric: -128 is not used


def quantised(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:  # (outputs, inputs), (outputs,)
    """Make a linear layer of `weight`, rounded to eight bits."""
    codes, scales = rounded(weight)
    kernels = chosen(weight.device, weight.dtype)
    if "int8" in kernels:
        from ..gpu.products import Product

        return Product(codes, bias, scales, OVERLAP in kernels)
    kernel = torch.ops.aten._weight_int8pack_mm
    few = FEW if weight.dtype != torch.float64 else 0  # a dtype that the kernel does not take
    # On CUDA the kernel computes in float32 and would convert the scales every time.
    kernel_scales = scales.float() if weight.device.type == "cuda" else scales

    def product(x: torch.Tensor) -> torch.Tensor:
        if len(x) <= few:
            y: torch.Tensor = kernel(x.contiguous(), codes, kernel_scales)
        else:
            y = linear(x, codes.to(x.dtype)) * scales
        return y if bias is None else y + bias

    return product


def rounded(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # (outputs, inputs), (outputs,)
    """Round to whole numbers; return them, and the scale of every row in the dtype of the weight."""
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    scales = (wide.abs().amax(1) / _LARGEST).to(weight.dtype)
    scales = torch.where(scales > 0, scales, 1)  # a row of zeros
    # Divide by the rounded scale, so that its rounding adds no error.
    codes = (wide / scales[:, None]).round_().clamp_(-_LARGEST, _LARGEST).to(torch.int8)
    return codes, scales
