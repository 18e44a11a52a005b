"""Rotation of a layer's queries and keys, and the write to the cache: one kernel instead of five to nine.

Queries and keys are first normed head by head where the model does that. Queries come back, contiguous. Positions and
slots are read on the device, so that a captured step can be replayed at any position. Rounding is that of torch's
operations: the norm's quotient, its product with the weight, and the product with the cosine are rounded to the rows'
dtype; the product with the sine is added in float32. A row's numbers do not depend on the other rows.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .overlap import overlapping, take_turn

_NUMBERS = 512  # of a program, at least those of one head


@triton.jit
def _rotary(
    qkv, cos, sin, positions, slots, weight, query, cache,
    plane, eps, heads: tl.constexpr, kv_heads: tl.constexpr, size: tl.constexpr,
    has_positions: tl.constexpr, has_slots: tl.constexpr, has_norm: tl.constexpr,
    group: tl.constexpr, block: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    take_turn(OVERLAP)
    dtype = query.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    position, slot = row, row
    if has_positions:
        position = tl.load(positions + row)
    if has_slots:
        slot = tl.load(slots + row)
    head = tl.program_id(1) * group + tl.arange(0, group)  # queries, then keys, then values
    at = tl.arange(0, block)  # in the first half of a head
    half: tl.constexpr = size // 2
    inside = (head < heads + 2 * kv_heads)[:, None] & (at < half)[None]
    turned = (head < heads + kv_heads)[:, None]
    start = qkv + (row * (heads + 2 * kv_heads) + head)[:, None] * size + at[None]
    low = tl.load(start, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(start + half, mask=inside, other=0.0).to(tl.float32)
    if has_norm:
        mean = (tl.sum(low * low, 1) + tl.sum(high * high, 1)) / size
        scale = tl.rsqrt(mean + eps)[:, None]
        weights = weight + head[:, None] * size + at[None]
        low_weight = tl.load(weights, mask=inside & turned, other=0.0).to(tl.float32)
        high_weight = tl.load(weights + half, mask=inside & turned, other=0.0).to(tl.float32)
        low_normed = ((low * scale).to(dtype).to(tl.float32) * low_weight).to(dtype).to(tl.float32)
        high_normed = ((high * scale).to(dtype).to(tl.float32) * high_weight).to(dtype).to(tl.float32)
        low, high = tl.where(turned, low_normed, low), tl.where(turned, high_normed, high)
    # Every head loads its own copy, from the same lines: a row for all would have to be sent from thread to thread.
    angle = position * size + tl.zeros_like(head)[:, None] + at[None]
    low_cos = tl.load(cos + angle, mask=inside & turned, other=0.0).to(tl.float32)
    high_cos = tl.load(cos + angle + half, mask=inside & turned, other=0.0).to(tl.float32)
    low_sin = tl.load(sin + angle, mask=inside & turned, other=0.0).to(tl.float32)
    high_sin = tl.load(sin + angle + half, mask=inside & turned, other=0.0).to(tl.float32)
    low_turned = (low * low_cos).to(dtype).to(tl.float32) + high * low_sin
    high_turned = (high * high_cos).to(dtype).to(tl.float32) + low * high_sin
    low, high = tl.where(turned, low_turned, low).to(dtype), tl.where(turned, high_turned, high).to(dtype)
    asking = (head < heads)[:, None]
    answer = query + (row * heads + head)[:, None] * size + at[None]
    tl.store(answer, low, mask=inside & asking)
    tl.store(answer + half, high, mask=inside & asking)
    kv = head - heads
    of_values = kv >= kv_heads
    place = of_values.to(tl.int64) * plane + (slot * kv_heads + tl.where(of_values, kv - kv_heads, kv)) * size
    kept = cache + place[:, None] + at[None]
    tl.store(kept, low, mask=inside & ~asking)
    tl.store(kept + half, high, mask=inside & ~asking)


def rotary(
    qkv: torch.Tensor,  # (T, heads + 2 kv_heads, D)
    cos: torch.Tensor,  # (N, 1, D)
    sin: torch.Tensor,
    positions: torch.Tensor | None,  # (T,)
    cache: torch.Tensor,  # (2, S, kv_heads, D)
    slots: torch.Tensor | None,  # (T,)
    weight: torch.Tensor | None,  # (heads + kv_heads, D)
    eps: float,
    overlap: bool = False,
) -> torch.Tensor:
    """Write a layer's keys and values to its cache and return its queries, (T, heads, D).

    Without positions, row i is rotated by row i of the tables; without slots it goes into slot i. `weight`: of the norm
    of queries and keys, where there is one.
    """
    qkv = qkv.contiguous()
    (rows, all_heads, size), kv_heads = qkv.shape, cache.shape[2]
    heads = all_heads - 2 * kv_heads
    query = qkv.new_empty(rows, heads, size)
    block = triton.next_power_of_2(size // 2)
    group = max(_NUMBERS // (2 * block), 1)
    if rows:
        with torch.cuda.device_of(query):
            _rotary[(rows, triton.cdiv(all_heads, group))](
                qkv, cos, sin, positions, slots, weight, query, cache,
                cache.stride(0), eps, heads, kv_heads, size,
                positions is not None, slots is not None, weight is not None, group, block,
                num_warps=1, **overlapping(overlap, query.device),
            )  # fmt: skip
    return query
