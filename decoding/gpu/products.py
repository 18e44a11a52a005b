"""Products of up to 128 rows with a weight, which read it once: plans by shape, and the launch of the kernels.

Each is `functional.linear`, in float32 inside and rounded once. It may norm its input first (x / rms, rounded, times
the norm's weight), and go on with SwiGLU or with the sum of the residual: then a layer needs no kernels for those.
A product repeats bit by bit: nothing is added in the order in which programs happen to end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch.nn.functional import linear, rms_norm, silu

from .product_row import multiply_row
from .product_rows import multiply_rows
from .product_sum import add_parts

ROWS = 128  # more are a matter of arithmetic, for which cuBLAS is as fast
DTYPES = (torch.bfloat16, torch.float16, torch.float32)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a product is cut into programs."""

    rows: int  # of a block; 0: one row without tensor cores
    outputs: int  # of a block
    inputs: int  # of a block, and a loop
    split: int = 1  # programs that share a block's inputs
    warps: int = 4
    stages: int = 4  # loops that weights are asked for ahead
    early: bool = False  # ask for weights while the kernel before still runs: Hopper and later


@dataclass(frozen=True, slots=True)
class Extras:
    """What a product does besides multiplying; each but `eps` may be left out."""

    bias: torch.Tensor | None = None  # of the weight's rows
    scales: torch.Tensor | None = None  # of the weight's rows, which are whole numbers of eight bits
    norm: torch.Tensor | None = None  # (inputs,): the weight of the norm that comes first
    eps: float = 0.0
    gated: bool = False  # SwiGLU: the first half of the weight's rows are gates
    residual: torch.Tensor | None = None  # (rows, outputs), added to what has been rounded

    @property
    def tensors(self) -> tuple[torch.Tensor | None, ...]:
        """In the order in which the kernels take them."""
        return self.scales, self.bias, self.norm, self.residual


PLAIN = Extras()
_SUMMED = 256  # outputs of a program that adds parts


def plan(rows: int, outputs: int, inputs: int, dtype: torch.dtype) -> Plan:
    """The plan for a shape: enough programs to keep a large device busy, each with enough bytes in flight."""
    if dtype == torch.float32:  # no tensor cores: small blocks, whose code is short
        return Plan(0, 8, 256, stages=3) if rows == 1 else Plan(16, 32, 32, 1, 4, 3)
    if rows == 1:
        return Plan(0, 4 if outputs < 8192 else 8, min(1024, triton.next_power_of_2(inputs)), stages=2)
    block = min(max(16, triton.next_power_of_2(rows)), ROWS)
    wide = 16 if outputs < 8192 else 32
    if rows > 16:
        wide = 64
    split = 1
    while rows > 16 and split < 8 and triton.cdiv(outputs, wide) * split < 96 and inputs // (split * 2) >= 512:
        split *= 2
    deep = 64 if inputs % 128 or block > 64 else 128
    return Plan(block, wide, deep, split, 4, 5 if block <= 32 else 4)


def product(x: torch.Tensor, weight: torch.Tensor, extras: Extras = PLAIN, by: Plan | None = None) -> torch.Tensor:
    """Multiply rows (T, inputs) by a weight (outputs, inputs), both contiguous."""
    rows, inputs = x.shape
    outputs = weight.shape[0] // 2 if extras.gated else weight.shape[0]
    by = plan(rows, outputs, inputs, x.dtype) if by is None else by
    assert x.is_contiguous() and weight.is_contiguous() and not (extras.gated and by.split > 1)
    y = x.new_empty(rows, outputs)
    sums = y if by.split == 1 else x.new_empty(by.split, rows, outputs, dtype=torch.float32)
    scales, bias, norm, residual = (y if part is None else part for part in extras.tensors)  # y: never read
    launch = {"launch_pdl": True} if by.early else {}
    lanes = max(1, 32 * by.warps // by.outputs) if by.early else 0
    scaled, biased, normed, added = (part is not None for part in extras.tensors)
    options: dict[str, Any] = {
        "inputs": inputs,
        "BLOCK_N": by.outputs,
        "BLOCK_K": by.inputs,
        "SPLIT": by.split,
        "STAGES": by.stages,
        "EVEN": inputs % (by.inputs * by.split) == 0,
        "SCALED": scaled,
        "BIASED": biased,
        "NORMED": normed,
        "GATED": extras.gated,
        "ADDED": added and by.split == 1,
        "EARLY": lanes,
        "num_warps": by.warps,
        **launch,
    }
    blocks = triton.cdiv(outputs, by.outputs)
    with torch.cuda.device_of(x):
        if by.rows:
            grid, wide = (blocks, by.split, triton.cdiv(rows, by.rows)), not x.is_cuda
            multiply_rows[grid](
                *(x, weight, scales, bias, norm, residual, sums, rows, outputs, extras.eps),
                **{"BLOCK_M": by.rows, "WIDE": wide, **options},
            )
        else:
            assert rows == 1
            multiply_row[blocks, by.split](
                x, weight, scales, bias, norm, residual, sums, outputs, extras.eps, **options
            )
        if by.split > 1:
            ends = {"SCALED": scaled, "BIASED": biased, "ADDED": added, "EARLY": lanes, "num_warps": 2, **launch}
            add_parts[triton.cdiv(outputs, _SUMMED), rows](
                sums, scales, bias, residual, y, outputs, by.split, _SUMMED, **ends
            )
    return y


def reference(x: torch.Tensor, weight: torch.Tensor, extras: Extras = PLAIN) -> torch.Tensor:
    """The same in torch's operations."""
    if extras.norm is not None:
        x = rms_norm(x, x.shape[1:], eps=extras.eps) * extras.norm
    y = linear(x, weight.to(x.dtype))
    if extras.scales is not None:
        y = y * extras.scales
    if extras.bias is not None:
        y = y + extras.bias
    if extras.gated:
        gate, up = y.chunk(2, -1)
        y = silu(gate) * up
    return y if extras.residual is None else extras.residual + y


class Product:
    """A linear layer: (T, inputs) -> (T, outputs)."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:  # (outputs, inputs), (outputs,)
        self._weight, self._bias = weight.contiguous(), bias
        self._extras = Extras(bias=bias)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        if 0 < len(x) <= ROWS:
            return product(x.contiguous(), self._weight, self._extras)
        return linear(x, self._weight, self._bias)
