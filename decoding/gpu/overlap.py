"""Lets a kernel start before the previous one has ended: programmatic dependent launch, on Hopper and later.

Between two kernels of a step a device idles for about a microsecond. With this launch a kernel may start as soon as
every program of the kernel before it has started. Then it must wait before it reads what another kernel writes, or
writes anything itself. Each kernel waits in every program, so that waiting for the previous kernel is waiting for all.
Only a model's weights may be requested earlier, since no kernel writes them.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


def overlapping(overlap: bool, device: torch.device) -> dict[str, Any]:
    """Return the options of a launch; the interpreter, on the CPU, runs one kernel after the other."""
    overlap = overlap and device.type != "cpu"
    return {"OVERLAP": overlap, **({"launch_pdl": True} if overlap else {})}


@triton.jit
def take_turn(OVERLAP: tl.constexpr):
    """Let the next kernel start, and wait for the end of the previous ones."""
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()


@triton.jit
def request(rows, SIZE: tl.constexpr, LANES: tl.constexpr):
    """Let the next kernel start, and prefetch the first `SIZE` numbers of rows of weights into the L2 cache.

    `rows` are (N,) pointers, and `LANES` threads share a row. Rows begin at multiples of 16 bytes, which is also the
    unit of a request.
    """
    tl.extra.cuda.gdc_launch_dependents()
    width: tl.constexpr = rows.dtype.element_ty.primitive_bitwidth // 8
    each: tl.constexpr = SIZE * width // LANES // 16 * 16
    if each > 0:
        at = rows[:, None] + (tl.arange(0, LANES) * (each // width))[None, :]
        tl.inline_asm_elementwise(
            "cp.async.bulk.prefetch.L2.global [$1], $2; mov.u32 $0, 0;",
            "=r,l,r",
            [at, tl.full(at.shape, each, tl.int32)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )
