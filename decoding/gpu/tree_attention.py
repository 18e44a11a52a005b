"""Attention of a step's rows to the text and to each other, in one kernel for every length of the text.

Every row sees the keys before slot `first`, and those rows from there on that `seen` marks. Both are read on the
device, so a recorded launch serves every later step of as many rows. The slots are divided among the programs: each
reads its keys once for the query heads that share them. A program writes the attention output of its share, in float32,
and the logarithm of its softmax's sum; `combine` merges the shares.

Which program reads which slots, and in what order, depends only on the number of slots in use: shares begin at
multiples of a power of two. So a token after a text gets the same numbers, bit by bit, whether it is read alone or in
a chain of guesses, with any number of rows beside it. Only if the number of slots passes a power of two between two
steps, and for guesses whose ancestors are not the rows right before them, sums are taken in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
import triton
import triton.language as tl

from .combine import LEAST, combine, slots_per_split
from .overlap import overlapping, take_turn

_SPLITS = 64  # the most, so that one program can combine the shares of a query
_ON_CPU = 4  # multiprocessors, in tests
_LOG2_E = 1.4426950408889634


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """The division of a launch into programs."""

    queries: int  # of a program: rows times the query heads that share a key/value head
    keys: int  # of a tile
    splits: int  # most shares of the slots
    warps: int
    stages: int  # tiles of keys in flight


@triton.jit
def _tile(
    q, key, value, shown, visible, real, scale, top, total, mixed, precision: tl.constexpr
):  # continues the softmax over a tile of keys
    k = tl.load(key, mask=visible[None] & real[:, None], other=0.0)
    scores = tl.dot(q, k, input_precision=precision) * scale
    scores = tl.where(shown, scores, float("-inf"))
    higher = tl.maximum(top, tl.max(scores, 1))
    weights, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
    v = tl.load(value, mask=visible[:, None] & real[None], other=0.0)
    mixed = tl.dot(weights.to(v.dtype), v, mixed * fade[:, None], input_precision=precision)
    return higher, total * fade + tl.sum(weights, 1), mixed


@triton.jit(do_not_specialize=["packed", "splits"])
def _attend(
    query, key, value, first, seen, mixed_shares, totals, packed, splits, scale,
    repeats: tl.constexpr, kv_heads: tl.constexpr, size: tl.constexpr, wide: tl.constexpr,
    queries: tl.constexpr, keys: tl.constexpr, precision: tl.constexpr, stages: tl.constexpr,
    OVERLAP: tl.constexpr,
):  # fmt: skip
    take_turn(OVERLAP)
    head, part = tl.program_id(1), tl.program_id(2)
    rows, length = packed // repeats, tl.load(first).to(tl.int32)
    each = slots_per_split(length + rows, splits, keys)
    begin = part * each
    end = tl.minimum(begin + each, length + rows)
    if begin >= end:
        return
    stride: tl.constexpr = kv_heads * size
    column, dim = tl.arange(0, keys), tl.arange(0, wide)
    at = tl.program_id(0) * queries + tl.arange(0, queries)
    inside, real = at < packed, dim < size
    place = at * kv_heads + head  # of a query among all heads of all rows
    q = tl.load(query + place[:, None] * size + dim[None], mask=inside[:, None] & real[None], other=0.0)
    key_tile, value_tile = column[None] * stride + dim[:, None], column[:, None] * stride + dim[None]
    offset = begin.to(tl.int64) * stride + head * size  # 64 bits: a cache may hold more numbers than 32 count
    top = tl.full((queries,), -1e30, tl.float32)  # finite, for a query that sees none of the keys read so far
    total = tl.zeros((queries,), tl.float32)
    mixed = tl.zeros((queries, wide), tl.float32)
    seen_by_all = tl.maximum(begin, tl.minimum(end, length // keys * keys))
    all_columns = column < keys
    for _ in tl.range(begin, seen_by_all, keys, num_stages=stages):
        top, total, mixed = _tile(
            q, key + offset + key_tile, value + offset + value_tile, all_columns[None], all_columns, real, scale,
            top, total, mixed, precision,
        )  # fmt: skip
        offset += keys * stride
    for start in tl.range(seen_by_all, end, keys, num_stages=1):
        visible, row = start + column < end, start + column - length
        among = (at // repeats)[:, None] * rows + row[None]
        shown = tl.load(seen + among, mask=inside[:, None] & (visible & (row >= 0))[None], other=0) != 0
        shown = (shown | (row < 0)[None]) & visible[None]
        top, total, mixed = _tile(
            q, key + offset + key_tile, value + offset + value_tile, shown, visible, real, scale,
            top, total, mixed, precision,
        )  # fmt: skip
        offset += keys * stride
    left = part * (packed * kv_heads) + place
    # A query may see no key of a share: then its weight is zero, and its values must not be NaN.
    some = tl.where(total > 0.0, total, 1.0)
    tl.store(totals + left, tl.where(total > 0.0, top + tl.log2(some), float("-inf")), mask=inside)
    shares = mixed_shares + left[:, None] * size + dim[None]
    tl.store(shares, mixed / some[:, None], mask=inside[:, None] & real[None])


@cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else _ON_CPU


def plan(kv_heads: int, size: int, slots: int, dtype: torch.dtype, device: torch.device) -> AttentionPlan:
    """Divide launches over up to `slots` keys, whatever the rows, which keeps a row's numbers the same.

    With tiles of 64 queries many rows read their keys rarely, and a single row costs hardly more. Without tensor cores,
    in float32, a program's registers hold smaller tiles.
    """
    wide, queries, keys, warps, stages = triton.next_power_of_2(size), 64, 32, 4, 4
    if dtype == torch.float32:
        queries, keys, warps, stages = 16, 32, 8, 1
    elif wide > 128:
        queries, keys, warps, stages = 16, 32, 8, 2
    splits = min(_multiprocessors(device) // kv_heads, _SPLITS, triton.cdiv(slots, LEAST * keys))
    return AttentionPlan(queries, keys, max(splits, 1), warps, stages)


def tree_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    first: torch.Tensor,
    seen: torch.Tensor,
    chosen: AttentionPlan | None = None,
    overlap: bool = False,
) -> torch.Tensor:  # (T, repeats * kv_heads, D), (1, kv_heads, S, D) twice as a cache lays them out, (1,), (T, T)
    """Return the attention output of rows that are in slots `first` to `first + T - 1`, (T, repeats * kv_heads * D)."""
    (rows, heads, size), kv_heads, slots = query.shape, key.shape[1], key.shape[2]
    assert query.is_contiguous() and seen.is_contiguous() and seen.dtype == torch.bool
    assert all(each.stride()[1:] == (size, kv_heads * size, 1) for each in (key, value))
    repeats, out = heads // kv_heads, torch.empty_like(query)
    packed = rows * repeats
    use = chosen or plan(kv_heads, size, slots, query.dtype, query.device)
    wide = max(triton.next_power_of_2(size), 16)
    totals = torch.empty(use.splits, rows * heads, dtype=torch.float32, device=query.device)
    shares = torch.empty(use.splits, rows * heads, size, dtype=torch.float32, device=query.device)
    precision = "ieee" if query.dtype == torch.float32 else "tf32"  # half precision has but one
    with torch.cuda.device_of(query):
        _attend[(triton.cdiv(packed, use.queries), kv_heads, use.splits)](
            query, key, value, first, seen, shares, totals, packed, use.splits, size**-0.5 * _LOG2_E,
            repeats, kv_heads, size, wide, use.queries, use.keys, precision, use.stages,
            num_warps=use.warps, **overlapping(overlap, out.device),
        )  # fmt: skip
        combine(shares, totals, first, out, rows, use.keys, overlap)
    return out.view(rows, -1)
