"""A minimal kernel, to test whether Triton compiles and launches at all."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..errors import ModelError


@triton.jit
def _write(out):
    tl.store(out, 1)


def probe(device: torch.device) -> None:
    """Run the kernel on a device; any error is raised."""
    out = torch.zeros(1, dtype=torch.int32, device=device)
    with torch.cuda.device_of(out):
        _write[(1,)](out)
    if out.item() != 1:
        raise ModelError("a kernel of Triton writes nothing")
