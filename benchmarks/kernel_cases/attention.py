"""Measure attention of a step's rows to texts of three lengths, beside attention in two parts."""

from __future__ import annotations

import os
from functools import cache, partial
from unittest import mock

import torch

from decoding.gpu.tree_attention import AttentionPlan, tree_attention
from decoding.model import kernels
from decoding.model.attention import BLOCK, merge, pack

from . import Case, LayerSizes

KEYS = (1024, 4096, 16_384)
ROWS = (1, 8, 64, 121)
AttentionInputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int]


def inputs(keys: int, shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> AttentionInputs:
    """Make the rows' queries, a layer's keys and values, the text's length, and a tree of three branches."""
    first = 300 if device.type == "cpu" else keys - 100  # so that attention in two parts has a full tail
    query = torch.randn(rows, shape.heads, shape.size, device=device, dtype=dtype)
    data = torch.randn(2, first + 2 * BLOCK, shape.kv_heads, shape.size, device=device, dtype=dtype)
    row = torch.arange(rows, device=device)
    seen = ((row[:, None] - row) % 3 == 0) & (row[:, None] >= row) | (row == 0)
    return query, data, torch.tensor([first], device=device), seen, first


def ours(
    query: torch.Tensor,
    data: torch.Tensor,
    first: torch.Tensor,
    seen: torch.Tensor,
    _: int,
    plan: AttentionPlan | None = None,
    overlap: bool = False,
) -> torch.Tensor:
    """Run our kernel, and the one that combines its shares."""
    key, value = data.transpose(1, 2).unsqueeze(1)
    return tree_attention(query, key, value, first, seen, plan, overlap)


@cache
def two_parts(device: torch.device, dtype: torch.dtype, size: int) -> kernels.Kernels:
    """Choose the kernels that run without ours and without further packages."""
    name = "plain" if device.type == "cpu" else "sdpa" if dtype == torch.float32 else "torch-flash"
    with mock.patch.dict(os.environ, {kernels.VARIABLE: name}):
        return kernels.choose(device, dtype, size)


def by_torch(query: torch.Tensor, data: torch.Tensor, _: torch.Tensor, seen: torch.Tensor, first: int) -> torch.Tensor:
    """Attend to whole blocks without a mask and to a tail with one, made once for all layers, and merge them."""
    made, rows = two_parts(query.device, query.dtype, query.shape[2]), len(query)
    assert made.prefix is not None
    key, value = data.transpose(1, 2).unsqueeze(1)
    cut, packed = first - first % BLOCK, pack(query, key.shape[1])
    bias = mask(seen, query.shape[1] // key.shape[1], first - cut, query.dtype)
    key_tail, value_tail = (each[:, :, cut : cut + BLOCK + rows] for each in (key, value))
    tail = made.tail(packed, key_tail, value_tail, bias)
    length = torch.empty(0)  # for packages that read it
    prefix = made.prefix.attend(packed, key[:, :, :cut], value[:, :, :cut], length)
    return merge(prefix, tail, query)


_MASKS = dict[tuple[object, ...], torch.Tensor]()


def mask(seen: torch.Tensor, repeats: int, before: int, dtype: torch.dtype) -> torch.Tensor:  # (T * repeats, tail)
    """Make the bias of a tail in which all rows see `before` keys."""
    rows = len(seen)
    name = (seen.device, rows, repeats, before, dtype)
    if name not in _MASKS:
        width = BLOCK + rows
        bias = torch.full((rows, repeats, -(-width // 16) * 16), -torch.inf, device=seen.device, dtype=dtype)
        bias[..., :before] = 0.0
        bias[..., before : before + rows] = torch.where(seen, 0.0, -torch.inf)[:, None]
        _MASKS[name] = bias.view(rows * repeats, -1)[:, :width]
    return _MASKS[name]


def reference(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, first: torch.Tensor, seen: torch.Tensor
) -> torch.Tensor:
    """Compute `tree_attention` with torch's operations, in float32 or wider, over every slot."""
    rows, size, kv_heads, slots = len(query), query.shape[2], key.shape[1], key.shape[2]
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    place = torch.arange(slots, device=query.device) - first  # as seen from the root
    among = seen.index_select(1, place.clamp(0, rows - 1)) & (place >= 0) & (place < rows)
    hidden = ~(among | (place < 0))[:, None]  # (T, 1, S)
    unwritten = (place >= rows)[:, None]
    packed = query.view(rows, -1, kv_heads, size).to(wide).permute(2, 0, 1, 3)  # (kv_heads, T, repeats, D)
    keys, values = (each[0].to(wide).masked_fill(unwritten, 0.0) for each in (key, value))
    scores = torch.matmul(packed, keys[:, None].mT) * size**-0.5
    mixed = torch.matmul(scores.masked_fill(hidden, -torch.inf).softmax(-1), values[:, None])
    return mixed.permute(1, 2, 0, 3).reshape(rows, -1).to(query.dtype)


def exact(query: torch.Tensor, data: torch.Tensor, first: torch.Tensor, seen: torch.Tensor, _: int) -> torch.Tensor:
    """Compute in float64, from the inputs as they are."""
    key, value = data.double().transpose(1, 2).unsqueeze(1)
    return reference(query.double(), key, value, first, seen)


CASES = [
    Case(f"attention, {keys} keys", partial(inputs, keys), ours, by_torch, exact, cold=True, rows=ROWS) for keys in KEYS
]
CASES.append(CASES[0].overlapping)
