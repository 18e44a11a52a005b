"""A product of up to 128 rows with a weight, on tensor cores: y = x @ weight.T, reading the weight once.

With few rows it is memory-bound, so bytes in flight matter: blocks of weights are copied into shared memory several
loops ahead. The weight is the left side of the product, because tensor cores want 16 or 64 rows there and 8 on the
right. If outputs are few, SPLIT programs share the inputs of a block of outputs, and `product_sum` adds their sums.

A row's numbers do not depend on the other rows, and on how many there are only through the block sizes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .overlap import request, take_turn
from .product_parts import as_dtype, finished, gated, loaded


@triton.jit(do_not_specialize=["rows"])
def multiply_rows(
    x,  # (rows, inputs)
    weight,  # (outputs, inputs), or (2 * outputs, inputs) with GATED
    scales,  # of the weight's rows, with SCALED
    bias,  # of the weight's rows, with BIASED
    norm,  # (inputs,): the norm's weight, with NORMED
    residual,  # (rows, outputs), with ADDED
    y,  # (rows, outputs), or float32 (SPLIT, rows, outputs) if SPLIT > 1
    rows,
    outputs,
    eps,
    inputs: tl.constexpr,
    BLOCK_M: tl.constexpr,  # rows
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
    WIDE: tl.constexpr,  # multiply float32: the interpreter cannot multiply bfloat16
):
    dtype: tl.constexpr = x.dtype.element_ty
    inner: tl.constexpr = tl.float32 if WIDE else dtype
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.program_id(2) * BLOCK_M + tl.arange(0, BLOCK_M)
    k = tl.arange(0, BLOCK_K)
    here = m < rows
    loops: tl.constexpr = (inputs + BLOCK_K * SPLIT - 1) // (BLOCK_K * SPLIT)
    first = tl.program_id(1) * (loops * BLOCK_K)
    # Outputs past the last read the last one's weights, which costs less than a mask; they are not stored.
    row_of = tl.minimum(n, outputs - 1).to(tl.int64)
    if LANES > 0:
        request(weight + row_of * inputs + first, min(STAGES, loops) * BLOCK_K, LANES)
        if GATED:
            request(weight + (row_of + outputs) * inputs + first, min(STAGES, loops) * BLOCK_K, LANES)
    take_turn(OVERLAP)

    x_at = x + m.to(tl.int64)[None, :] * inputs + k[:, None]  # (K, M)
    reach = tl.full((BLOCK_M,), 1.0, tl.float32)
    if NORMED:
        squares = tl.zeros((BLOCK_K, BLOCK_M), tl.float32)
        for at in range(0, inputs, BLOCK_K):
            values = tl.load(x_at + at, mask=here[None, :] & (at + k < inputs)[:, None], other=0.0).to(tl.float32)
            squares += values * values
        reach = tl.rsqrt(tl.sum(squares, 0) / inputs + eps)

    weight_at = weight + row_of[:, None] * inputs + k[None, :]  # (N, K)
    up_at = weight_at + tl.cast(outputs, tl.int64) * inputs
    total = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    up = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    for loop in tl.range(0, loops, num_stages=STAGES):
        at = first + loop * BLOCK_K
        there = at + k < inputs
        w = loaded(weight_at + at, there, EVEN)
        if EVEN:
            values = tl.load(x_at + at, mask=here[None, :], other=0.0)
        else:
            values = tl.load(x_at + at, mask=here[None, :] & there[:, None], other=0.0)
        if NORMED:
            factor = tl.load(norm + at + k, mask=at + k < inputs, other=0.0)
            normal = (values.to(tl.float32) * reach[None, :]).to(dtype).to(tl.float32)
            values = (normal * factor.to(tl.float32)[:, None]).to(dtype)
        values = values.to(inner)
        total = tl.dot(as_dtype(w, inner), values, total, input_precision="ieee")
        if GATED:
            up = tl.dot(as_dtype(loaded(up_at + at, there, EVEN), inner), values, up, input_precision="ieee")

    n = n[:, None]
    inside = n < outputs
    stored = inside & here[None, :]
    at = m.to(tl.int64)[None, :] * outputs + n
    if SPLIT > 1:
        y += tl.program_id(1).to(tl.int64) * rows * outputs
    else:
        total = finished(total, n, inside, scales, bias, SCALED, BIASED)
    if GATED:
        total = gated(total, finished(up, n + outputs, inside, scales, bias, SCALED, BIASED), dtype)
    if ADDED:
        total = tl.load(residual + at, mask=stored, other=0.0).to(tl.float32) + total.to(dtype).to(tl.float32)
    tl.store(y + at, total.to(y.dtype.element_ty), mask=stored)
