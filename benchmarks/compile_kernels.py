"""Compile our kernels for GPUs that this machine lacks: `python -m benchmarks.compile_kernels 80 90`.

Triton's interpreter accepts code that its compiler refuses. So the cases of `benchmarks.gpu_kernels` are launched here
on tensors without data, under a driver without a device: each launch compiles down to a device's machine code. The
programs that try plans on a device fill Triton's cache in the same way, on all processors at once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from unittest import mock

import torch

from .gpu_kernels import cases, reason
from .kernel_cases import ODD, SHAPES, TINY

META = torch.device("meta")
_TURN = "griddepcontrol.wait"  # where an overlapping kernel waits for those before
_MEMORY = re.compile(r"\b(?:ld|st|red|atom|cp)\.(?!param|async\.bulk\.prefetch)[a-z0-9.:_]*", re.IGNORECASE)
SHARED = {80: 99 * 1024, 90: 227 * 1024}  # bytes of a program; 8.6 and 8.9 have less than 8.0
T = TypeVar("T")


class NoDevice:
    """A driver that only knows the compilation target."""

    def __init__(self, capability: int) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> Any:
        """Return the compilation target."""
        return self._target

    def get_current_device(self) -> int:
        """Number the missing device by its capability: Triton caches kernels by that number."""
        return int(self._target.arch)

    def get_current_stream(self, device: int) -> int:
        """Return the number of a stream."""
        return 0


def compile_only(capability: int, inspect: Callable[[Any, Any], object] | None = None) -> None:
    """From now on, compile and inspect every kernel that this process launches, instead of running it."""
    from triton.runtime.driver import driver
    from triton.runtime.jit import KernelInterface

    def launch(kernel: Any, grid: Any, *inputs: Any, **options: Any) -> None:
        compiled = kernel.run(*inputs, grid=grid, warmup=True, **options)
        if inspect:
            inspect(kernel, compiled)

    driver.set_active(NoDevice(capability))
    KernelInterface.__getitem__ = lambda kernel, grid: partial(launch, kernel, grid)


def compile_all(launch: Callable[[T], object], tasks: Sequence[T], capability: int) -> set[str]:
    """Compile the tasks' kernels into Triton's cache on disk, by processes that see no device; return failures."""
    context, workers = multiprocessing.get_context("forkserver"), min(len(os.sched_getaffinity(0)), 32, len(tasks))
    hidden = mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="")
    with hidden, ProcessPoolExecutor(workers, context, compile_only, (capability,)) as pool:
        return {failure for failure in pool.map(partial(_failure, launch), tasks) if failure}


def _failure(launch: Callable[[T], object], task: T) -> str:
    try:
        launch(task)
    except Exception as error:  # it occurs again where the task is measured
        return f"{task}: {reason(error)}"
    return ""


def show(capability: int, kernel: Any, compiled: Any) -> None:
    """Print a compiled kernel's resources; AssertionError if a device has fewer, or if it reads too early."""
    code, shared, stack = compiled.asm["cubin"], compiled.metadata.shared, _stack(compiled.asm["cubin"])
    overlap = _TURN in compiled.asm["ptx"]
    needs = f"{len(code)} bytes, {shared} of shared memory, {stack} of stack"
    print(f"  {kernel.__name__}: {needs}{', overlapping' if overlap else ''}")
    assert shared <= SHARED.get(capability, shared), f"a program has {SHARED[capability]} bytes of shared memory"
    assert overlap == compiled.metadata.launch_pdl, "kernels that may start early must wait, and no others can"
    if overlap:
        assert not (early := touched_early(compiled.asm["ptx"])), f"it does not wait before {early}"


def touched_early(code: str) -> list[str]:
    """List an overlapping kernel's reads and writes before its turn; only prefetching weights is allowed."""
    return _MEMORY.findall(code.split(_TURN)[0])


def _stack(code: bytes) -> int:
    """Count the bytes of stack that a thread uses besides its registers, with CUDA's tool, which comes with Triton."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with TemporaryDirectory() as folder:
        (Path(folder) / "cubin").write_bytes(code)
        command = [str(tool), "--dump-resource-usage", f"{folder}/cubin"]
        usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(usage.split("STACK:")[1].split()[0])


def main() -> None:
    """Compile the kernels of all cases, up to the first failure."""
    shapes = {shape.name: shape for shape in (*TINY, *SHAPES, ODD)}
    parser = argparse.ArgumentParser(description="Compile our kernels for GPUs that are not there.")
    parser.add_argument("capabilities", nargs="+", type=int, help="80 for an A100, 90 for an H100")
    parser.add_argument("--shapes", nargs="*", default=[shape.name for shape in SHAPES], choices=shapes)
    parser.add_argument("--dtypes", nargs="*", default=["bfloat16", "float16", "float32"])
    parser.add_argument("--rows", nargs="*", type=int, default=[], help="of a step (default: those of each case)")
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of the names of kernels")
    parser.add_argument("--in-turn", action="store_true", help="leave out kernels that start while another ends")
    options = parser.parse_args()
    os.environ.pop("TRITON_INTERPRET", None)
    for capability in options.capabilities:
        compile_only(capability, partial(show, capability))
        for case in (each for each in cases(options.only) if not (options.in_turn and each.overlaps)):
            for shape in (shapes[name] for name in options.shapes if capability >= case.capability):
                for dtype in options.dtypes:
                    print(f"{case.name}, {shape.name}, {dtype}, sm_{capability}")
                    for rows in options.rows or case.rows:
                        case.ours(*case.make(shape, rows, META, getattr(torch, dtype)))


if __name__ == "__main__":
    main()
