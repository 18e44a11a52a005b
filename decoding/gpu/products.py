"""Products of up to 128 rows with a weight, which read it once: plans by shape, and the launch of the kernels.

Each is `functional.linear`, computed in float32 and rounded once. It may norm its input first (x / rms, rounded, times
the norm's weight), and continue with SwiGLU or with adding the residual: then a layer needs no kernels for those.
A product repeats bit by bit: no sum depends on the order in which programs end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
from torch.nn.functional import linear, rms_norm, silu

from .overlap import overlapping
from .product_row import multiply_row
from .product_rows import multiply_rows
from .product_sum import add_parts

ROWS = 128  # more are compute-bound, where cuBLAS is as fast
DTYPES = (torch.bfloat16, torch.float16, torch.float32)


@dataclass(frozen=True, slots=True)
class Tiling:
    """The division of a product into programs."""

    rows: int  # of a block; 0: one row without tensor cores
    outputs: int  # of a block
    inputs: int  # of a block, and a loop
    split: int = 1  # programs that share a block's inputs
    warps: int = 4
    stages: int = 4  # loops that weights are loaded ahead


@dataclass(frozen=True, slots=True)
class Extras:
    """The operations of a product besides multiplying; each but `eps` may be left out."""

    bias: torch.Tensor | None = None  # of the weight's rows
    scales: torch.Tensor | None = None  # of the weight's rows, which are whole numbers of eight bits
    norm: torch.Tensor | None = None  # (inputs,): the weight of the norm that comes first
    eps: float = 0.0
    gated: bool = False  # SwiGLU: the first half of the weight's rows are gates
    residual: torch.Tensor | None = None  # (rows, outputs), added to the rounded product

    @property
    def tensors(self) -> tuple[torch.Tensor | None, ...]:
        """List the tensors in the order of the kernels' arguments."""
        return self.scales, self.bias, self.norm, self.residual


PLAIN = Extras()
_MANY = 6144  # outputs, or inputs
_WIDE = 24_576  # outputs: blocks of 128 are enough for all multiprocessors
_SUMMED = 256  # outputs of a program that adds parts


def plan(rows: int, outputs: int, inputs: int, dtype: torch.dtype, eight_bits: bool = False) -> Tiling:
    """Choose the tiling for a shape that was fastest on an H200: enough programs, each with enough bytes in flight."""
    if dtype == torch.float32:  # no tensor cores: small blocks, whose code is short
        return Tiling(0, 8, 256, stages=3) if rows == 1 else Tiling(16, 32, 32, 1, 4, 3)
    if rows == 1:
        if outputs >= _MANY and inputs <= 1024:
            return Tiling(0, 16, 256)
        return Tiling(0, 4, 512, warps=2, stages=3) if eight_bits else Tiling(0, 2, 2048, stages=1)
    if not eight_bits:
        return steady_plan(rows, outputs, inputs)
    if rows <= 16:
        return Tiling(16, 64, 128, stages=5) if outputs >= _MANY else Tiling(16, 32, 128, stages=6)
    block = min(triton.next_power_of_2(rows), ROWS)
    return Tiling(block, 64, 64 if inputs % 128 or block > 64 else 128, _split(outputs, inputs))


def steady_plan(rows: int, outputs: int, inputs: int) -> Tiling:
    """Choose a tiling for half precision that sums a row's numbers in one order, whatever the number of rows.

    So a token gets the same numbers, bit by bit, read alone or among guesses. For one row `plan` is faster by a tenth.
    """
    block, stages = (16, 5) if rows <= 16 else (64 if rows <= 64 else ROWS, 4)
    if outputs >= _WIDE:
        return Tiling(block, 128, 64)
    return Tiling(block, 64, 64 if inputs % 128 else 128, _split(outputs, inputs), stages=stages)


def _split(outputs: int, inputs: int) -> int:
    """Return how many programs share a block of 64 outputs, so that all multiprocessors have work."""
    split = 1
    while split < 8 and triton.cdiv(outputs, 64) * split < 96 and inputs // (split * 2) >= 512:
        split *= 2
    return split


class KernelLaunch(NamedTuple):
    """A kernel and the arguments of its launch."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def product(
    x: torch.Tensor, weight: torch.Tensor, extras: Extras = PLAIN, by: Tiling | None = None, overlap: bool = False
) -> torch.Tensor:
    """Multiply rows (T, inputs) by a weight (outputs, inputs), both contiguous."""
    y, launches = planned(x, weight, extras, by, overlap)
    with torch.cuda.device_of(x):
        for kernel, grid, arguments, options in launches:
            kernel[grid](*arguments, **options)
    return y


def planned(
    x: torch.Tensor, weight: torch.Tensor, extras: Extras, by: Tiling | None, overlap: bool
) -> tuple[torch.Tensor, list[KernelLaunch]]:
    """Allocate the output, and plan the kernels that write it."""
    rows, inputs = x.shape
    outputs = weight.shape[0] // 2 if extras.gated else weight.shape[0]
    by = plan(rows, outputs, inputs, x.dtype, weight.dtype == torch.int8) if by is None else by
    if x.is_cuda:
        blocks = by.rows * x.itemsize + by.outputs * weight.itemsize * (2 if extras.gated else 1)
        by = replace(by, stages=max(1, min(by.stages, _shared_memory(x.device) // (blocks * by.inputs))))
    assert x.is_contiguous() and weight.is_contiguous() and (by.rows or rows == 1)
    assert not (extras.gated and by.split > 1)
    y = x.new_empty(rows, outputs)
    sums = y if by.split == 1 else x.new_empty(by.split, rows, outputs, dtype=torch.float32)
    scales, bias, norm, residual = (y if part is None else part for part in extras.tensors)  # y: never read
    scaled, biased, normed, added = (part is not None for part in extras.tensors)
    ends: dict[str, Any] = {"SCALED": scaled, "BIASED": biased, **overlapping(overlap, x.device)}
    even = inputs % (by.inputs * by.split) == 0
    aligned = weight.storage_offset() * weight.itemsize % 16 == 0 and inputs * weight.itemsize % 16 == 0
    options: dict[str, Any] = {
        "inputs": inputs,
        "BLOCK_N": by.outputs,
        "BLOCK_K": by.inputs,
        "SPLIT": by.split,
        "STAGES": by.stages,
        "EVEN": even,
        "NORMED": normed,
        "GATED": extras.gated,
        "ADDED": added and by.split == 1,
        "LANES": max(32 * by.warps // by.outputs, 1) if ends["OVERLAP"] and even and aligned else 0,
        "num_warps": by.warps,
        **ends,
    }
    grid = triton.cdiv(outputs, by.outputs), by.split, triton.cdiv(rows, by.rows or 1)
    tensors = x, weight, scales, bias, norm, residual, sums
    if by.rows:
        options |= {"BLOCK_M": by.rows, "WIDE": x.device.type == "cpu"}
        launches = [KernelLaunch(multiply_rows, grid, (*tensors, rows, outputs, extras.eps), options)]
    else:
        launches = [KernelLaunch(multiply_row, grid, (*tensors, outputs, extras.eps), options)]
    if by.split > 1:
        options = {"SPLIT": by.split, "BLOCK_N": _SUMMED, "ADDED": added, "num_warps": 2, **ends}
        arguments = sums, scales, bias, residual, y, outputs
        launches.append(KernelLaunch(add_parts, (triton.cdiv(outputs, _SUMMED), rows), arguments, options))
    return y, launches


@cache
def _shared_memory(device: torch.device) -> int:
    """Return the bytes of shared memory that a program's blocks may take."""
    properties = torch.cuda.get_device_properties(device)
    return int(getattr(properties, "shared_memory_per_block_optin", 101_376)) - 1024


def reference(x: torch.Tensor, weight: torch.Tensor, extras: Extras = PLAIN) -> torch.Tensor:
    """Compute the same product with torch's operations."""
    if extras.norm is not None:
        x = rms_norm(x, x.shape[1:], eps=extras.eps) * extras.norm
    if extras.scales is None:
        y = linear(x, weight, extras.bias)
    else:
        y = linear(x, weight.to(x.dtype)) * extras.scales
        y = y if extras.bias is None else y + extras.bias
    if extras.gated:
        gate, up = y.chunk(2, -1)
        y = silu(gate) * up
    return y if extras.residual is None else extras.residual + y


class Product:
    """A linear layer: (T, inputs) -> (T, outputs). With `scales` (outputs,), weights have eight bits."""

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None, scales: torch.Tensor | None = None, overlap: bool = False
    ) -> None:
        self._weight = weight.contiguous()
        self._extras = Extras(bias=bias, scales=scales)
        self._overlap = overlap

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        if 0 < len(x) <= ROWS:
            by = steady_plan(len(x), *self._weight.shape) if self._weight.itemsize == 2 else None
            return self._product(x, self._extras, by)
        return reference(x, self._weight, self._extras)

    def normed(self, x: torch.Tensor, norm: torch.Tensor, eps: float, *, gated: bool = False) -> torch.Tensor:
        """Norm the rows with the weight `norm` (inputs,), then multiply; `gated`: then SwiGLU, (T, outputs / 2)."""
        return self._product(x, replace(self._extras, norm=norm, eps=eps, gated=gated))

    def added(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Multiply, and add to `residual` (T, outputs)."""
        return self._product(x, replace(self._extras, residual=residual.contiguous()))

    def _product(self, x: torch.Tensor, extras: Extras, by: Tiling | None = None) -> torch.Tensor:
        return product(x.contiguous(), self._weight, extras, by, self._overlap)
