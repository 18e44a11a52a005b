"""Merges attention to two parts of a text as if it had been one: six operations of torch in one kernel.

Each part comes with its attention output and the logarithm of its softmax's sum. The result is rounded once, to the
query's dtype, and written row by row, as the next product reads it. A row's numbers do not depend on the other rows.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..model.kernels import Mixed
from .overlap import overlapping, take_turn

_NUMBERS = 1024  # of a program


@triton.jit
def _merge(
    values, sums, others, other_sums, out, pairs,
    value_head, value_row, sum_head, sum_row, other_head, other_row, other_sum_head, other_sum_row,
    kv_heads: tl.constexpr, size: tl.constexpr, rows: tl.constexpr, block: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    take_turn(OVERLAP)
    pair = tl.program_id(0) * rows + tl.arange(0, rows)  # out is (N, kv_heads, D), neighbouring
    row, head, at = (pair // kv_heads).to(tl.int64), (pair % kv_heads).to(tl.int64), tl.arange(0, block)
    inside = pair < pairs
    whole = inside[:, None] & (at < size)[None]
    total = tl.load(sums + head * sum_head + row * sum_row, mask=inside, other=0.0)
    other_total = tl.load(other_sums + head * other_sum_head + row * other_sum_row, mask=inside, other=0.0)
    share = 1.0 / (1.0 + tl.exp(other_total - total))
    value = tl.load(values + (head * value_head + row * value_row)[:, None] + at[None], mask=whole, other=0.0)
    other = tl.load(others + (head * other_head + row * other_row)[:, None] + at[None], mask=whole, other=0.0)
    value, other, share = value.to(tl.float32), other.to(tl.float32), share[:, None]
    mixed = value * share + other * (1.0 - share)
    tl.store(out + pair.to(tl.int64)[:, None] * size + at[None], mixed.to(out.dtype.element_ty), mask=whole)


def merge_parts(one: Mixed, other: Mixed, query: torch.Tensor, overlap: bool = False) -> torch.Tensor:
    """Return the attention output (T, repeats * kv_heads * D) of the rows of `query` (T, repeats * kv_heads, D)."""
    (values, sums), (others, other_sums) = one, other
    _, kv_heads, packed, size = values.shape
    out = torch.empty_like(query)
    pairs = packed * kv_heads
    if values.stride(3) != 1 or others.stride(3) != 1:
        values, others = values.contiguous(), others.contiguous()
    block = triton.next_power_of_2(size)
    rows = max(_NUMBERS // block, 1)
    with torch.cuda.device_of(out):
        _merge[(triton.cdiv(pairs, rows),)](
            values, sums, others, other_sums, out, pairs,
            *values.stride()[1:3], *sums.stride()[1:], *others.stride()[1:3], *other_sums.stride()[1:],
            kv_heads, size, rows, block, num_warps=4, **overlapping(overlap, out.device),
        )  # fmt: skip
    return out.view(len(query), -1)
