"""Time our products of few rows beside cuBLAS, by every plan that is worth a try: `python -m benchmarks.gpu_products`.

A CUDA graph cycles through copies of the weights that exceed any L2 cache; errors are those against float64, in
rounding steps of bfloat16. First every product of three models by itself, then chains of layers. All kernels are
compiled first, by all processors. Tables go to the screen and to $OUT/products.md, every measurement to
$OUT/products.jsonl.

    python -m benchmarks.gpu_products --device cpu --rows 1 3 --shapes tiny    # a rehearsal in Triton's interpreter
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import linear

from tools.interpreted import mend

from . import layer_chains
from .gpu_kernels import need_cuda, reason, row, steps
from .kernel_cases import SHAPES, TINY, LayerSizes
from .product_bench import Bench, Multiplication, products

COLD = 100 * 2**20  # bytes: twice an L2 cache
HEAD = ["product", "rows", "MB", "cuBLAS us", "GB/s", "best us", "GB/s", "faster", "plan", "default us", "GB/s", "plan"]
HEAD += ["error"]


def plans(rows: int, eight: bool) -> list[Any]:
    """List the plans that are worth a try for `rows` rows."""
    from decoding.gpu.products import Tiling

    block, stages = next((each, stages) for each, stages in ((16, 5), (64, 4), (128, 4)) if rows <= each)
    tried = [
        Tiling(block, outputs, inputs, split, 4, stages)
        for outputs, inputs in ((64, 128), (64, 64), (32, 128), (128, 64))
        for split in (1, 2, 4)
        if outputs < 128 or split == 1
    ]
    if rows == 1:
        single = [(4, 1024, 4, 1), (4, 1024, 4, 2), (8, 512, 4, 3), (2, 2048, 4, 1), (1, 2048, 4, 1), (16, 256, 4, 4)]
        single += [(4, 512, 2, 3), (8, 1024, 8, 2)]
        tried += [Tiling(0, outputs, inputs, 1, warps, stages) for outputs, inputs, warps, stages in single]
    if eight:
        tried = [each for each in tried if each.split == 1]
        tried += [Tiling(0, 4, 2048, 1, 4, 2), Tiling(0, 8, 1024, 1, 4, 2)] if rows == 1 else []
    return tried


def sweep(bench: Bench, shape: LayerSizes, rows: int, eight: bool = False) -> None:
    """Write a row of the table for every product of a model."""
    for name, outputs, inputs in products(shape):
        if bench.over:
            return
        try:
            measure(bench, f"{shape.name} {name}", outputs, inputs, rows, eight)
        except Exception as error:  # the others are measured anyway
            bench.say(row([f"{shape.name} {name}", str(rows), f"FAILED {reason(error)[:150]}"]))


def measure(bench: Bench, name: str, outputs: int, inputs: int, rows: int, eight: bool) -> None:
    """Time one product by every plan, and cuBLAS."""
    from decoding.gpu.products import PLAIN, Extras, plan, product

    size = outputs * inputs * (1 if eight else 2)
    copies = 2 if bench.device.type == "cpu" else min(max(2, math.ceil(COLD / size)), 256)
    if eight:
        weights = torch.randint(-127, 128, (copies, outputs, inputs), dtype=torch.int8, device=bench.device)
        extras = Extras(scales=torch.full((outputs,), 0.01 * inputs**-0.5, device=bench.device).bfloat16())
    else:
        weights, extras = bench.random(copies, outputs, inputs), PLAIN
    x = bench.random(rows, inputs)
    exact = x.double() @ weights[0].double().T
    if extras.scales is not None:
        exact *= extras.scales.double()

    def theirs(weight: torch.Tensor) -> torch.Tensor:
        y = linear(x, weight.to(x.dtype))
        return y if extras.scales is None else y * extras.scales

    def seconds(call: Callable[[torch.Tensor], Any]) -> float:
        return bench.time([partial(call, weight) for weight in weights])

    base = {"name": name, "rows": rows, "outputs": outputs, "inputs": inputs, "int8": eight}
    other, error = seconds(theirs), steps(theirs(weights[0]), exact, x.dtype)
    bench.records.append(base | {"plan": None, "us": other * 1e6, "gbs": size / other / 1e9, "error": error})
    times = dict[Any, float]()
    default = plan(rows, outputs, inputs, x.dtype)
    worst = 0.0
    for by in dict.fromkeys([default, *plans(rows, eight)]):
        try:
            y = product(x, weights[0], extras, by)
            error = steps(y, exact, x.dtype)
            if not error <= 2.0 or not torch.equal(y, product(x, weights[0], extras, by)):
                raise ValueError(f"wrong by {error:.1f} steps, or not the same twice")
            worst = max(worst, error)
            times[by] = seconds(partial(product, x, extras=extras, by=by))
        except Exception as failure:  # one plan may ask for too much shared memory
            bench.records.append(base | {"plan": asdict(by), "failure": reason(failure)})
            continue
        took = times[by]
        bench.records.append(base | {"plan": asdict(by), "us": took * 1e6, "gbs": size / took / 1e9, "error": error})
    if not times:
        raise RuntimeError(bench.records[-1]["failure"])
    best = min(times, key=times.__getitem__)
    bench.best[rows, outputs, inputs, eight] = best
    cells = [name, str(rows), f"{size / 1e6:.1f}", *cell(other, size), *cell(times[best], size)]
    cells += [f"{other / times[best]:.2f}", brief(best), *cell(times.get(default), size), brief(default)]
    cells.append(f"{worst:.2f}")
    bench.say(row(cells))


def cell(seconds: float | None, size: int) -> tuple[str, str]:
    """Write two cells: microseconds, and the weight's bytes per second."""
    return ("-", "-") if seconds is None else (f"{seconds * 1e6:.2f}", f"{size / seconds / 1e9:.0f}")


def brief(by: Any) -> str:
    """Write a plan in few letters: rows x outputs x inputs, split, warps, stages."""
    return f"{by.rows}x{by.outputs}x{by.inputs}/{by.split} w{by.warps} s{by.stages}"


def alone(width: int) -> dict[str, Multiplication]:
    """List the same product for one row and for more, by plans that sum in the same order."""
    from decoding.gpu.products import Tiling

    return {
        f"{rows} rows, blocks of {outputs}": (rows, 256, width, Tiling(max(rows, 16), outputs, 64), False, ())
        for rows in (1, 16, 64, 128)
        for outputs in (32, 64)
    }


def invariance(bench: Bench, width: int) -> None:
    """Report whether a row's bits depend on the number of rows."""
    from decoding.gpu.products import product

    x, weight = bench.random(128, width), bench.random(1, 256, width)[0]
    first = {way: product(x[: task[0]], weight, by=task[3])[0] for way, task in alone(width).items()}
    expected = next(iter(first.values()))
    differ = [way for way, row in first.items() if not torch.equal(row, expected)]
    where = f"not in {differ}" if differ else "everywhere"
    bench.say(f"\nRow 0 has the same bits as alone, in blocks of 32 outputs: {where}.")


def main() -> None:
    """Compile, measure, write."""
    parser = argparse.ArgumentParser(description="Time our products beside cuBLAS.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=60.0, help="measure nothing after so many")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 64, 8, 128])
    parser.add_argument("--shapes", nargs="+", default=[shape.name for shape in SHAPES])
    parser.add_argument("--capability", type=int, default=90, help="of the device, to compile for: 90 is Hopper")
    options = parser.parse_args()
    need_cuda(parser, options.device)
    begin = time.monotonic()
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
        mend()
    bench = Bench(torch.device(options.device), begin + options.seconds, options.capability)
    shapes = [shape for shape in (*SHAPES, *TINY) if shape.name in options.shapes]
    try:
        with torch.inference_mode():
            everything(bench, shapes, options.rows)
    finally:
        bench.say(f"\n{time.monotonic() - begin:.0f} s in all.")
        if out := os.environ.get("OUT"):
            Path(out, "products.md").write_text("\n".join(bench.lines) + "\n")
            Path(out, "products.jsonl").write_text("".join(json.dumps(each) + "\n" for each in bench.records))


def everything(bench: Bench, shapes: Sequence[LayerSizes], rows: Sequence[int]) -> None:
    """Measure all tables, the most informative first."""
    from decoding.gpu.products import plan

    few = [count for count in rows if count in (1, 16)]
    tasks: list[Multiplication] = []
    for shape in shapes:
        for _, outputs, inputs in products(shape):
            for count in rows:
                default = plan(count, outputs, inputs, torch.bfloat16)
                tasks += [(count, outputs, inputs, by, False, ()) for by in [default, *plans(count, False)]]
                if count in (*few, 64):
                    tasks += [(count, outputs, inputs, by, True, ("scales",)) for by in [default, *plans(count, True)]]
    bench.compile([*tasks, *alone(shapes[0].hidden).values()])
    if bench.device.type == "cuda":
        bench.say(torch.cuda.get_device_name(bench.device))
    with suppress(Exception):
        invariance(bench, shapes[0].hidden)
    bench.heads(HEAD)
    for count in rows[:2]:
        for shape in shapes:
            sweep(bench, shape, count)
    bench.compile([task for shape in shapes for count in few for task in layer_chains.tasks(bench, shape, count)])
    bench.heads(layer_chains.HEAD)
    for count in few:
        for shape in shapes:
            if not bench.over:
                layer_chains.measure(bench, shape, count)
    for eight, counts in ((True, few), (False, rows[2:]), (True, [count for count in rows if count == 64])):
        if counts:
            bench.heads(HEAD, "int8; cuBLAS widens the weight first\n" if eight else "")
        for count in counts:
            for shape in shapes:
                sweep(bench, shape, count, eight)


if __name__ == "__main__":
    main()
