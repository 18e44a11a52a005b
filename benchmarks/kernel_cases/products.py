"""Measure products with the engine's plans; benchmarks.gpu_products tries others."""

from __future__ import annotations

from typing import Any

import torch

from decoding.gpu.products import Extras, product, reference, steady_plan
from decoding.model.quantised import rounded as quantised

from . import Case, LayerSizes, rounded

_EPS = 1e-5
_ROWS = 1, 8, 64, 128


def _inputs(outputs: int, width: int, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    weight = torch.randn(outputs, width, device=device, dtype=dtype) * width**-0.5
    return torch.randn(rows, width, device=device, dtype=dtype), weight


def _head(shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    return *_inputs(10 * shape.hidden + 8, shape.hidden, rows, device, dtype), Extras()


def _qkv(shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    outputs = (shape.heads + 2 * shape.kv_heads) * shape.size
    bias = torch.randn(outputs, device=device, dtype=dtype)
    return *_inputs(outputs, shape.hidden, rows, device, dtype), Extras(bias=bias)


def _normed_gated(shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    norm = torch.randn(shape.hidden, device=device, dtype=dtype)
    extras = Extras(norm=norm, eps=_EPS, gated=True)
    return *_inputs(2 * shape.inner, shape.hidden, rows, device, dtype), extras


def _added(shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    residual = torch.randn(rows, shape.hidden, device=device, dtype=dtype)
    return *_inputs(shape.hidden, shape.inner, rows, device, dtype), Extras(residual=residual)


def _eight_bits(shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype) -> tuple[Any, ...]:
    x, weight = _inputs(2 * shape.inner, shape.hidden, rows, device, dtype)
    codes, scales = quantised(weight)
    return x, codes, Extras(scales=scales)


def _steady(x: torch.Tensor, weight: torch.Tensor, extras: Extras, overlap: bool = False) -> torch.Tensor:
    return product(x, weight, extras, steady_plan(len(x), *weight.shape), overlap)


def _exact(x: torch.Tensor, weight: torch.Tensor, extras: Extras) -> torch.Tensor:
    """Compute in float64, rounded where transformers rounds."""
    wide = x.double()
    if extras.norm is not None:
        wide = rounded(wide * (wide.square().mean(-1, keepdim=True) + extras.eps).rsqrt(), x.dtype)
        wide = rounded(wide * extras.norm.double(), x.dtype)
    y = wide @ weight.double().T
    y = y if extras.scales is None else y * extras.scales.double()
    y = y if extras.bias is None else y + extras.bias.double()
    if extras.gated:
        gate, up = rounded(y, x.dtype).chunk(2, -1)
        y = rounded(gate * torch.sigmoid(gate), x.dtype) * up
    return y if extras.residual is None else rounded(y, x.dtype) + extras.residual.double()


CASES = [
    Case("product", _head, product, reference, _exact, cold=True, rows=_ROWS),
    Case("product, bias", _qkv, product, reference, _exact, cold=True, rows=_ROWS),
    Case("product, norm, swiglu", _normed_gated, product, reference, _exact, cold=True, rows=_ROWS),
    Case("product, residual", _added, product, reference, _exact, cold=True, rows=_ROWS),
    Case("product, int8", _eight_bits, product, reference, _exact, cold=True, rows=_ROWS),
    Case("product, one row as among others", _added, _steady, reference, _exact, cold=True, rows=(1,)),
]
CASES += [case.overlapping for case in CASES[2:]]
