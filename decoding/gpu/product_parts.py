"""Functions shared by the product kernels: widening weights, finishing outputs, SwiGLU."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def widened(codes):
    """Widen int8 to float32 through the mantissa of 2^23: a conversion takes four times as long."""
    shifted = codes.to(tl.uint8, bitcast=True).to(tl.uint32) ^ 0x80
    return (shifted | 0x4B000000).to(tl.float32, bitcast=True) - 8388736.0


@triton.jit
def loaded(weights, inside, EVEN: tl.constexpr):
    """Load a block of weights, (N, K), each of which is read once; `inside` (K,) says which are there."""
    if EVEN:
        return tl.load(weights, eviction_policy="evict_first")
    return tl.load(weights, mask=inside[None, :], other=0, eviction_policy="evict_first")


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
