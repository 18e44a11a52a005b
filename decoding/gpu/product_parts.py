"""What the kernels of products share: reading weights as numbers, normalising inputs, finishing outputs."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def widened(codes):
    """Widen int8 to float32 by way of the mantissa of 2^23: converting takes four times as long."""
    shifted = codes.to(tl.uint8, bitcast=True).to(tl.uint32) ^ 0x80
    return (shifted | 0x4B000000).to(tl.float32, bitcast=True) - 8388736.0


@triton.jit
def as_dtype(weight, dtype: tl.constexpr):
    """Convert weights to the dtype in which they are multiplied."""
    if weight.dtype == tl.int8:
        return widened(weight).to(dtype)
    return weight.to(dtype)


@triton.jit
def finished(total, n, inside, scales, bias, SCALED: tl.constexpr, BIASED: tl.constexpr):
    """Multiply sums by their output's scale and add its bias, in float32. `n`: a row's or a column's output numbers."""
    if SCALED:
        total *= tl.load(scales + n, mask=inside, other=0.0).to(tl.float32)
    if BIASED:
        total += tl.load(bias + n, mask=inside, other=0.0).to(tl.float32)
    return total


@triton.jit
def gated(gate, up, dtype: tl.constexpr):
    """Apply SwiGLU, rounding where transformers rounds: both sums, the SiLU, the product."""
    gate = gate.to(dtype).to(tl.float32)
    silu = (gate / (1.0 + tl.exp(-gate))).to(dtype).to(tl.float32)
    return silu * up.to(dtype).to(tl.float32)


@triton.jit
def request_early(weight, first, outputs, inputs: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Prefetch the first bytes of a program's weights while the kernel before it still runs (Hopper and later).

    Weights need not wait for that kernel's outputs. They go into the L2 cache, which all multiprocessors share.
    """
    tl.extra.cuda.gdc_launch_dependents()
    share: tl.constexpr = inputs // LANES  # numbers that a lane prefetches: 16 bytes or a multiple of them
    width: tl.constexpr = weight.dtype.element_ty.primitive_bitwidth // 8
    size: tl.constexpr = min(share * width, 256) // 16 * 16  # more would push out of the L2 what is wanted first
    if size > 0:
        row = tl.minimum(first + tl.arange(0, ROWS), outputs - 1).to(tl.int64)
        at = weight + row[:, None] * inputs + (tl.arange(0, LANES) * (size // width))[None, :]
        tl.inline_asm_elementwise(
            "cp.async.bulk.prefetch.L2.global [$1], $2; mov.u32 $0, 0;",
            "=r,l,r",
            [at, tl.full((ROWS, LANES), size, tl.int32)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )
    tl.extra.cuda.gdc_wait()
