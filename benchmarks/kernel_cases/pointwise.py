"""Measure the kernels between a layer's products."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import rms_norm

from decoding.gpu import merge, norm, rotary, swiglu
from decoding.model.attention import merge as merge_by_torch
from decoding.model.kernels import Mixed
from decoding.model.pointwise import swiglu as swiglu_by_torch

from . import Case, LayerSizes, rounded

_EPS = 1e-5
_POSITIONS = 4096


def _norm_inputs(shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    x, delta = torch.randn(2, rows, shape.hidden, device=device, dtype=dtype).unbind(0)
    return x, delta, torch.randn(shape.hidden, device=device, dtype=dtype), _EPS


def _exact_norm(x: torch.Tensor, delta: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
    total = rounded(x.double() + delta.double(), x.dtype)
    quotient = rounded(total * (total.square().mean(-1, keepdim=True) + eps).rsqrt(), x.dtype)
    return total, quotient * weight.double()


def _norm_by_torch(
    x: torch.Tensor, delta: torch.Tensor | None, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    total = x if delta is None else x + delta
    return total, rms_norm(total, total.shape[1:], eps=eps) * weight


def _swiglu_inputs(shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    return (torch.randn(rows, 2 * shape.inner, device=device, dtype=dtype),)


def _exact_swiglu(gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.double().chunk(2, -1)
    return rounded(gate * torch.sigmoid(gate), gate_up.dtype) * up


def _merge_inputs(shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    packed = rows * shape.heads // shape.kv_heads  # as torch's kernels lay their outcome out: rows before heads
    values, others = torch.randn(2, 1, packed, shape.kv_heads, shape.size, device=device, dtype=dtype).transpose(2, 3)
    sums, other_sums = torch.randn(2, 1, shape.kv_heads, packed, device=device).unbind(0)
    return (values, sums), (others, other_sums), torch.empty(rows, shape.heads, shape.size, device=device, dtype=dtype)


def _exact_merge(one: Mixed, other: Mixed, query: torch.Tensor) -> torch.Tensor:
    share = torch.sigmoid(one[1].double() - other[1].double())[..., None]
    mixed = share * one[0].double() + (1.0 - share) * other[0].double()
    return mixed.transpose(1, 2).reshape(len(query), -1)


def _rotary_inputs(shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    qkv = torch.randn(rows, shape.heads + 2 * shape.kv_heads, shape.size, device=device, dtype=dtype)
    angle = torch.rand(_POSITIONS, 1, shape.size // 2, device=device) * 6.0
    cos = torch.cat((angle.cos(), angle.cos()), -1).to(dtype)
    sin = torch.cat((-angle.sin(), angle.sin()), -1).to(dtype)
    cache = torch.zeros(2, _POSITIONS, shape.kv_heads, shape.size, device=device, dtype=dtype)
    positions, slots = torch.randperm(_POSITIONS, device=device)[: 2 * rows].view(2, rows).unbind(0)
    return qkv, cos, sin, positions, cache, slots, None, _EPS


def _normed_inputs(shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    *inputs, _, eps = _rotary_inputs(shape, rows, device, dtype)
    return *inputs, torch.randn(shape.heads + shape.kv_heads, shape.size, device=device, dtype=dtype), eps


def _exact_rotary(
    qkv: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    cache: torch.Tensor,
    slots: torch.Tensor,
    weight: torch.Tensor | None,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    """Return queries, keys and values."""
    dtype, kv_heads = qkv.dtype, cache.shape[2]
    turned, values = qkv.double().tensor_split((qkv.shape[1] - kv_heads,), 1)
    if weight is not None:
        turned = rounded(turned * (turned.square().mean(-1, keepdim=True) + eps).rsqrt(), dtype)
        turned = rounded(turned * weight.double(), dtype)
    halves = turned.roll(qkv.shape[2] // 2, -1)
    turned = rounded(turned * cos[positions].double(), dtype) + halves * sin[positions].double()
    return *turned.tensor_split((qkv.shape[1] - 2 * kv_heads,), 1), values


def _rotary_by_torch(
    qkv: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor | None,
    cache: torch.Tensor,
    slots: torch.Tensor | None,
    weight: torch.Tensor | None,
    eps: float,
) -> torch.Tensor:
    rows, kv_heads = len(qkv), cache.shape[2]
    cos, sin = (table[:rows] if positions is None else table.index_select(0, positions) for table in (cos, sin))
    turned, values = qkv.tensor_split((qkv.shape[1] - kv_heads,), 1)
    if weight is not None:
        turned = rms_norm(turned, turned.shape[2:], eps=eps) * weight
    turned = torch.addcmul(turned * cos, turned.roll(qkv.shape[2] // 2, -1), sin)
    query, keys = turned.tensor_split((qkv.shape[1] - 2 * kv_heads,), 1)
    written = torch.stack((keys, values))
    if slots is None:
        cache[:, :rows] = written
    else:
        cache.index_copy_(1, slots, written)
    return query.contiguous()


def _written(inputs: tuple[Any, ...], query: torch.Tensor) -> tuple[torch.Tensor, ...]:
    cache, slots = inputs[4:6]
    return query, *cache.index_select(1, slots)


CASES = [
    Case("norm", _norm_inputs, norm.norm, _norm_by_torch, _exact_norm),
    Case("rotary", _rotary_inputs, rotary.rotary, _rotary_by_torch, _exact_rotary, outputs=_written),
    Case("rotary, qk-norm", _normed_inputs, rotary.rotary, _rotary_by_torch, _exact_rotary, outputs=_written),
    Case("swiglu", _swiglu_inputs, swiglu.swiglu, swiglu_by_torch, _exact_swiglu),
    Case("merge", _merge_inputs, merge.merge_parts, merge_by_torch, _exact_merge),
]
CASES += [case.overlapping for case in CASES]
