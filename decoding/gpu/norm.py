"""The RMS norm that follows a residual sum, with its weight: three operations of torch in one kernel.

A row is read once, stays in the registers of one program, and is written once as the sum and once normed.
Rounding is transformers': the sum, the quotient by the root mean square, and the product with the weight are each
rounded to the rows' dtype; all else is float32. A row's numbers do not depend on the other rows.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .overlap import overlapping, take_turn


@triton.jit
def _norm(
    x, delta, weight, total, normed, eps,
    width: tl.constexpr, has_delta: tl.constexpr, block: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    take_turn(OVERLAP)
    row = tl.program_id(0).to(tl.int64) * width
    at = tl.arange(0, block)
    inside = at < width
    weights = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)  # loaded before the rest waits for a sum
    wide = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    if has_delta:
        wide += tl.load(delta + row + at, mask=inside, other=0.0).to(tl.float32)
        rounded = wide.to(total.dtype.element_ty)
        tl.store(total + row + at, rounded, mask=inside)
        wide = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / width + eps)
    rounded = (wide * scale).to(normed.dtype.element_ty)
    tl.store(normed + row + at, (rounded.to(tl.float32) * weights).to(normed.dtype.element_ty), mask=inside)


def norm(
    x: torch.Tensor, delta: torch.Tensor | None, weight: torch.Tensor, eps: float, overlap: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:  # (T, H), (T, H) or None, (H,) -> (T, H) twice
    """Return the sum of `x` and `delta` (`x` itself without a delta), and that sum normed."""
    x = x.contiguous()
    rows, width = x.shape
    normed = torch.empty_like(x)
    total = x
    if delta is not None:
        delta, total = delta.contiguous(), torch.empty_like(x)
    if rows:
        block = triton.next_power_of_2(width)
        warps = min(max(block // 256, 1), 16)  # 8 numbers a thread: 16 bytes of bfloat16, the widest load
        with torch.cuda.device_of(x):
            _norm[(rows,)](
                x, delta, weight, total, normed, eps, width, delta is not None, block,
                num_warps=warps, **overlapping(overlap, x.device),
            )  # fmt: skip
    return total, normed
