"""Name the cases of `benchmarks.gpu_kernels`: every file beside this one has a list `CASES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class LayerSizes:
    """The sizes of a model's layer."""

    name: str
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    size: int  # of a head


SHAPES = (
    LayerSizes("135M", 576, 1536, 9, 3, 64),
    LayerSizes("1B", 2048, 8192, 32, 8, 64),
    LayerSizes("7B", 4096, 14_336, 32, 8, 128),
)
TINY = (LayerSizes("tiny", 64, 96, 4, 2, 16),)  # to rehearse on a CPU
ODD = LayerSizes("odd", 200, 328, 4, 4, 80)  # sizes that fill no block, without shared key/value heads
ROWS = (1, 8, 64)

KernelOutputs = torch.Tensor | tuple[torch.Tensor, ...]
KernelInputs = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel, the functions that it is compared with, and the function that makes its inputs."""

    name: str
    make: Callable[[LayerSizes, int, torch.device, torch.dtype], KernelInputs]  # of that many rows, on the device
    ours: Callable[..., KernelOutputs]
    torch: Callable[..., KernelOutputs]  # what runs without the kernel, timed beside it
    exact: Callable[..., KernelOutputs]  # in float64, on the inputs themselves: it rounds where the kernel should
    # What is compared: what came out, or also what was written to the inputs.
    outputs: Callable[[KernelInputs, Any], KernelOutputs] = lambda inputs, outputs: outputs
    cold: bool = False  # whether to go through as many copies of the inputs as do not fit into the device's L2 cache
    rows: tuple[int, ...] = ROWS
    capability: int = 80  # the first that has what the kernel uses
    overlaps: bool = False  # whether the kernel may start while the one before ends

    @property
    def overlapping(self) -> Case:
        """Return the case of the same kernel with overlapping launches."""
        name, ours = f"{self.name}, overlapping", partial(self.ours, overlap=True)
        return replace(self, name=name, ours=ours, capability=90, overlaps=True)


def rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Round to a dtype, and return float64."""
    return x.to(dtype).double()
