"""A product of one row with a weight, without tensor cores: y = x @ weight.T, reading the weight once.

Every thread multiplies 16 bytes of weights at a time in float32, and sums are combined only at the end; no weight
passes through shared memory, and programs are so small that several on each multiprocessor hide each other's latency.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .overlap import request, take_turn
from .product_parts import as_dtype, finished, gated, loaded


@triton.jit
def multiply_row(
    x,  # (inputs,)
    weight,  # (outputs, inputs), or (2 * outputs, inputs) with GATED
    scales,  # of the weight's rows, with SCALED
    bias,  # of the weight's rows, with BIASED
    norm,  # (inputs,): the norm's weight, with NORMED
    residual,  # (outputs,), with ADDED
    y,  # (outputs,), or float32 (SPLIT, outputs) if SPLIT > 1
    outputs,
    eps,
    inputs: tl.constexpr,
    BLOCK_N: tl.constexpr,  # outputs
    BLOCK_K: tl.constexpr,  # inputs
    SPLIT: tl.constexpr,
    STAGES: tl.constexpr,
    EVEN: tl.constexpr,  # whether SPLIT * BLOCK_K divides the inputs
    SCALED: tl.constexpr,
    BIASED: tl.constexpr,
    NORMED: tl.constexpr,
    GATED: tl.constexpr,
    ADDED: tl.constexpr,
    OVERLAP: tl.constexpr,
    LANES: tl.constexpr,  # threads that ask early for a row of weights, or 0
):
    dtype: tl.constexpr = x.dtype.element_ty
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    loops: tl.constexpr = (inputs + BLOCK_K * SPLIT - 1) // (BLOCK_K * SPLIT)
    first = tl.program_id(1) * (loops * BLOCK_K)
    # Outputs past the last read the last one's weights, which costs less than a mask; they are not stored.
    row_of = tl.minimum(n, outputs - 1).to(tl.int64)
    if LANES > 0:
        request(weight + row_of * inputs + first, min(STAGES, loops) * BLOCK_K, LANES)
        if GATED:
            request(weight + (row_of + outputs) * inputs + first, min(STAGES, loops) * BLOCK_K, LANES)
    take_turn(OVERLAP)

    reach = 1.0
    if NORMED:
        squares = tl.zeros((BLOCK_K,), tl.float32)
        for at in range(0, inputs, BLOCK_K):
            values = tl.load(x + at + k, mask=at + k < inputs, other=0.0).to(tl.float32)
            squares += values * values
        reach = tl.rsqrt(tl.sum(squares, 0) / inputs + eps)

    weight_at = weight + row_of[:, None] * inputs + k[None, :]  # (N, K)
    up_at = weight_at + tl.cast(outputs, tl.int64) * inputs
    products = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    ups = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for loop in tl.range(0, loops, num_stages=STAGES):
        at = first + loop * BLOCK_K
        here = at + k < inputs
        w = loaded(weight_at + at, here, EVEN)
        if EVEN:
            values = tl.load(x + at + k).to(tl.float32)
        else:
            values = tl.load(x + at + k, mask=here, other=0.0).to(tl.float32)
        if NORMED:
            factor = tl.load(norm + at + k, mask=here, other=0.0)
            normal = (values * reach).to(dtype).to(tl.float32)
            values = (normal * factor.to(tl.float32)).to(dtype).to(tl.float32)
        products += as_dtype(w, tl.float32) * values[None, :]
        if GATED:
            ups += as_dtype(loaded(up_at + at, here, EVEN), tl.float32) * values[None, :]

    inside = n < outputs
    total = tl.sum(products, 1)
    if SPLIT > 1:
        y += tl.program_id(1).to(tl.int64) * outputs
    else:
        total = finished(total, n, inside, scales, bias, SCALED, BIASED)
    if GATED:
        total = gated(total, finished(tl.sum(ups, 1), n + outputs, inside, scales, bias, SCALED, BIASED), dtype)
    if ADDED:
        total = tl.load(residual + n, mask=inside, other=0.0).to(tl.float32) + total.to(dtype).to(tl.float32)
    tl.store(y + n, total.to(y.dtype.element_ty), mask=inside)
