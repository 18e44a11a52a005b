"""Adds the partial sums of a product whose inputs were split, always in one order, so that runs repeat bit by bit."""

from __future__ import annotations

import triton
import triton.language as tl

from .overlap import take_turn
from .product_parts import finished


@triton.jit
def add_parts(
    parts,  # float32 (SPLIT, rows, outputs)
    scales,  # (outputs,), with SCALED
    bias,  # (outputs,), with BIASED
    residual,  # (rows, outputs), with ADDED
    y,  # (rows, outputs)
    outputs,
    SPLIT: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SCALED: tl.constexpr,
    BIASED: tl.constexpr,
    ADDED: tl.constexpr,
    OVERLAP: tl.constexpr,
):
    take_turn(OVERLAP)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = n < outputs
    at = tl.program_id(1).to(tl.int64) * outputs + n
    part = tl.num_programs(1).to(tl.int64) * outputs
    total = tl.zeros((BLOCK_N,), tl.float32)
    for index in tl.static_range(SPLIT):
        total += tl.load(parts + index * part + at, mask=inside, other=0.0)
    total = finished(total, n, inside, scales, bias, SCALED, BIASED)
    if ADDED:
        rounded = total.to(y.dtype.element_ty).to(tl.float32)
        total = tl.load(residual + at, mask=inside, other=0.0).to(tl.float32) + rounded
    tl.store(y + at, total.to(y.dtype.element_ty), mask=inside)
