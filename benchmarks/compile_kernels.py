"""Compile our kernels for GPUs that are not there: `python -m benchmarks.compile_kernels 80 90`.

Triton's interpreter forgives what its compiler refuses. So the cases of `benchmarks.gpu_kernels` are launched here on
CPU tensors under a driver that has no device: each launch compiles, down to machine code, what a device would be given.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import torch

from .gpu_kernels import cases
from .kernel_cases import SHAPES, TINY


class NoDevice:
    """A driver that knows what to compile for, and nothing else."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        """Return what to compile for."""
        return self._target

    def get_current_device(self) -> int:
        """Number the device that is not there by its capability: Triton keeps what it compiled by that number."""
        return int(self._target.arch)

    def get_current_stream(self, device: int) -> int:
        """Name one of its streams."""
        return 0


def compile_only(kernel: Any, grid: Any) -> Any:
    """Return what stands for `kernel[grid]`."""

    def launch(*inputs: Any, **options: Any) -> None:
        compiled = kernel.run(*inputs, grid=grid, warmup=True, **options)
        print(f"  {kernel.__name__}: {len(compiled.asm['cubin'])} bytes, {compiled.metadata.shared} of shared memory")

    return launch


def main() -> None:
    """Compile the kernels of all cases; the first that cannot be compiled ends it."""
    parser = argparse.ArgumentParser(description="Compile our kernels for GPUs that are not there.")
    parser.add_argument("capabilities", nargs="+", type=int, help="80 for an A100, 90 for an H100")
    parser.add_argument("--shapes", nargs="*", default=[shape.name for shape in SHAPES])
    parser.add_argument("--dtypes", nargs="*", default=["bfloat16", "float16", "float32"])
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of the names of kernels")
    options = parser.parse_args()
    os.environ.pop("TRITON_INTERPRET", None)
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver
    from triton.runtime.jit import KernelInterface

    KernelInterface.__getitem__ = compile_only
    for capability in options.capabilities:
        driver.set_active(NoDevice(GPUTarget("cuda", capability, 32)))
        for case in cases(options.only):
            for shape in (each for each in (*TINY, *SHAPES) if each.name in options.shapes):
                for dtype in options.dtypes:
                    print(f"{case.name}, {shape.name}, {dtype}, sm_{capability}")
                    for rows in case.rows:
                        case.ours(*case.make(shape, rows, torch.device("cpu"), getattr(torch, dtype)))


if __name__ == "__main__":
    main()
