"""Combines the shares of a split attention, each weighted by its part of the softmax's sum, in float32.

A program has one query and reads all of its shares at once, so that the launch lasts as long as one read.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .overlap import overlapping, take_turn

LEAST = 4  # tiles of keys that a split reads: fewer cost more to combine than they save
_LEAST = tl.constexpr(LEAST)


@triton.jit
def slots_per_split(slots, splits, keys: tl.constexpr):
    """Return the slots that a split reads: what is read at a time, times the least power of two that covers all."""
    each = tl.full((), _LEAST * keys, tl.int32)
    for _ in tl.static_range(24):
        each = tl.where(each * splits < slots, each * 2, each)
    return each


@triton.jit(do_not_specialize=["count", "rows", "splits"])
def _combine(
    mixed_shares, totals, first, out, count, rows, splits,
    size: tl.constexpr, wide: tl.constexpr, shares: tl.constexpr, keys: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    take_turn(OVERLAP)
    place = tl.program_id(0)
    slots = tl.load(first).to(tl.int32) + rows
    used = tl.cdiv(slots, slots_per_split(slots, splits, keys))
    part, dim = tl.arange(0, shares), tl.arange(0, wide)
    at = part * count + place
    total = tl.load(totals + at, mask=part < used, other=float("-inf"))
    weight = tl.exp2(total - tl.max(total, 0))
    weight /= tl.sum(weight, 0)
    inside = (part < used)[:, None] & (dim < size)[None]
    mixed = tl.load(mixed_shares + at[:, None] * size + dim[None], mask=inside, other=0.0)
    mixed = tl.sum(mixed * weight[:, None], 0)
    tl.store(out + place * size + dim, mixed.to(out.dtype.element_ty), mask=dim < size)


def combine(
    shares: torch.Tensor,
    totals: torch.Tensor,
    first: torch.Tensor,
    out: torch.Tensor,
    rows: int,
    keys: int,
    overlap: bool = False,
) -> None:  # (splits, N, D), (splits, N), (1,), N * D numbers
    """Combine the shares of N queries, as many shares as the `first` slots and those of `rows` take."""
    splits, count, size = shares.shape
    wide, most = triton.next_power_of_2(size), triton.next_power_of_2(splits)
    warps = min(max(wide * most // 1024, 1), 8)
    _combine[(count,)](
        shares, totals, first, out, count, rows, splits, size, wide, most, keys,
        num_warps=warps, **overlapping(overlap, out.device),
    )  # fmt: skip
