"""Measure our Triton kernels one by one: largest errors, and times beside torch's operations.

    python -m benchmarks.gpu_kernels --device cuda --seconds 60

Errors are those of the outputs against float64, in rounding steps of the dtype at the value's size; a value below a
hundredth of its output's largest counts as one of that size. Times are medians over replays of CUDA graphs of 100
launches, which exclude the host's work. A kernel that fails is named with its error, and the others are measured.

With `--device cpu` the kernels run in Triton's interpreter, as a rehearsal: those times mean nothing.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import statistics
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from tools.interpreted import mend

from . import kernel_cases
from .kernel_cases import SHAPES, TINY, Case, KernelInputs, KernelOutputs, LayerSizes

LAUNCHES, REPLAYS = 100, 5
COLD = 200 * 2**20  # bytes that no L2 cache holds
HEAD = ("kernel", "shape", "rows", "error", "torch's error", "us", "torch's us", "faster", "compiled in s")


def main() -> None:
    """Check and time every case, each row printed as soon as it is measured."""
    parser = argparse.ArgumentParser(description="Check and time our kernels.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--seconds", type=float, default=60.0, help="start no case after so many")
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of the names of the kernels to run")
    options = parser.parse_args()
    need_cuda(parser, options.device)
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
        mend()
    device, dtype, begin = torch.device(options.device), getattr(torch, options.dtype), time.monotonic()
    shapes, launches = (TINY, 2) if options.device == "cpu" else (SHAPES, LAUNCHES)
    print(row(HEAD), row(["---"] * len(HEAD)), sep="\n")
    for case in cases(options.only):
        for shape in shapes:
            for rows in case.rows:
                if time.monotonic() - begin > options.seconds:
                    print(f"\nEnded after {options.seconds:.0f} s, before {case.name} at {shape.name}.")
                    return
                cells = measured(case, shape, rows, device, dtype, launches)
                print(row([case.name, shape.name, str(rows), *cells]), flush=True)


def need_cuda(parser: argparse.ArgumentParser, device: str) -> None:
    """Exit with a sentence if the requested device does not exist."""
    if device != "cpu" and not torch.cuda.is_available():
        parser.error("there is no CUDA device on this machine")


def cases(names: Sequence[str]) -> list[Case]:
    """List the cases of all files, or of some kernels; a file that cannot be imported is named."""
    listed = list[Case]()
    for module in pkgutil.iter_modules(kernel_cases.__path__):
        try:
            listed += import_module(f"{kernel_cases.__name__}.{module.name}").CASES
        except Exception as error:  # of any kind: the other kernels are measured anyway
            print(row([module.name, f"FAILED: {reason(error)}", *[""] * (len(HEAD) - 2)]))
    return [case for case in listed if not names or case.name.startswith(tuple(names))]


def measured(
    case: Case, shape: LayerSizes, rows: int, device: torch.device, dtype: torch.dtype, launches: int
) -> Sequence[str]:
    """Measure the cells of one case, after its first three."""
    try:
        torch.manual_seed(0)
        inputs = case.make(shape, rows, device, dtype)
        exact, begin = case.exact(*copied(inputs)), time.monotonic()
        ours, compiled = case.outputs(inputs, case.ours(*inputs)), time.monotonic() - begin
        theirs = copied(inputs)
        errors = [steps(each, exact, dtype) for each in (ours, case.outputs(theirs, case.torch(*theirs)))]
        sets = [inputs, *(copied(inputs) for _ in range(copies(inputs) if case.cold else 0))]
        times = [timed(run, sets, device, launches) for run in (case.ours, case.torch)]
    except Exception as error:
        return [f"FAILED: {reason(error)}", *[""] * 5]
    return [*(f"{each:.2f}" for each in (*errors, *times, times[1] / times[0])), f"{compiled:.1f}"]


def steps(outputs: KernelOutputs, exact: KernelOutputs, dtype: torch.dtype) -> float:
    """Return the largest error in rounding steps."""
    largest = 0.0
    for each, wanted in zip(tree_leaves(outputs), tree_leaves(exact), strict=True):
        size = torch.maximum(wanted.abs(), wanted.abs().max() / 100).clamp(min=torch.finfo(dtype).tiny)
        step = torch.finfo(dtype).eps * torch.exp2(size.log2().floor())
        error = ((each.double() - wanted).abs() / step).nan_to_num(nan=torch.inf)
        largest = max(largest, float(error.max()))
    return largest


def timed(run: Callable[..., Any], sets: Sequence[KernelInputs], device: torch.device, launches: int) -> float:
    """Time a call, in microseconds, over the sets of inputs in turn."""

    def work() -> None:
        for number in range(launches):
            run(*sets[number % len(sets)])

    if device.type != "cuda":
        begin = time.perf_counter()
        work()
        return 1e6 * (time.perf_counter() - begin) / launches
    return 1000 * replay_ms(lambda: run(*sets[0]), work, device, REPLAYS) / launches


def replay_ms(warm_up: Callable[[], Any], work: Callable[[], Any], device: torch.device, replays: int) -> float:
    """Time work that is captured in a CUDA graph: the median milliseconds of its replays."""
    stream, graph = torch.cuda.Stream(device), torch.cuda.CUDAGraph()  # type: ignore[no-untyped-call]  # torch's
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        warm_up()
        with torch.cuda.graph(graph, stream=stream):
            work()
        graph.replay()
        return device_ms(graph.replay, replays)


def device_ms(work: Callable[[], object], rounds: int) -> float:
    """Return the median milliseconds that the device takes for some work."""
    times = list[float]()
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]  # torch's
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def copies(inputs: KernelInputs) -> int:
    """Return how many copies of the inputs exceed any L2 cache."""
    size = sum(each.nbytes for each in tree_leaves(inputs) if isinstance(each, torch.Tensor))
    return min(COLD // max(size, 1), LAUNCHES)


def copied(inputs: KernelInputs) -> KernelInputs:
    """Copy inputs to other addresses, in the same layout."""
    clones: KernelInputs = tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, inputs)
    return clones


def reason(error: Exception) -> str:
    """Format an error as a table cell."""
    return f"{type(error).__name__}: {error}".replace("\n", " ").replace("|", "/")[:300]


def row(cells: Sequence[str]) -> str:
    """Write a row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
