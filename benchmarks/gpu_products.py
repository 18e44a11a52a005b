"""Our products of few rows beside cuBLAS, by every plan that is worth a try: `python -m benchmarks.gpu_products`.

Weights are taken in turn from so many copies that no L2 cache holds them, in a CUDA graph; errors are those against
float64, in rounding steps of bfloat16. First every product of three models by itself, then whole chains of layers
without attention, which show what a launch costs and what fused kernels save. All kernels are compiled first, by all
processors. Tables go to the screen and to $OUT/products.md, every single measurement to $OUT/products.jsonl.

    python -m benchmarks.gpu_products --device cpu --rows 1 3 --shapes tiny    # a rehearsal in Triton's interpreter
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import linear, rms_norm, silu

from .gpu_kernels import need_cuda, replay_ms
from .kernel_cases import SHAPES, TINY, Shape

VOCABULARY = {"135M": 49_152, "1B": 128_256, "7B": 32_000, "tiny": 200}
LAYERS = {"135M": 30, "1B": 16, "7B": 8, "tiny": 2}  # of a chain: too many bytes for an L2 cache
COLD = 100 * 2**20  # bytes: twice an L2 cache
REPLAYS = 7
EPS = 1e-5


@dataclass
class Bench:
    """What is measured on, and what has been."""

    device: torch.device
    end: float
    pool: Any
    bandwidth: float = 0.0
    best: dict[tuple[int, int, int, bool], Any] = field(default_factory=dict)  # by rows, outputs, inputs, eight bits
    lines: list[str] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    def say(self, line: str) -> None:
        """Print a line, and keep it for the file."""
        print(line, flush=True)
        self.lines.append(line)

    @property
    def over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() > self.end

    def time(self, calls: Sequence[Callable[[], Any]]) -> float:
        """Seconds of one call, all of them captured in one graph."""
        if self.device.type != "cuda":
            begin = time.perf_counter()
            calls[0]()
            return time.perf_counter() - begin

        def work() -> None:
            for call in calls:
                call()

        return replay_ms(calls[0], work, self.device, REPLAYS) / 1000 / len(calls)

    def random(self, *size: int) -> torch.Tensor:
        """Random numbers of bfloat16; a weight's are small, so that sums are about one."""
        scale = size[-1] ** -0.5 if len(size) == 3 else 1.0
        return torch.empty(size, dtype=torch.bfloat16, device=self.device).normal_(0.0, scale)


def plans(rows: int, eight: bool) -> list[Any]:
    """What is worth a try for so many rows."""
    from decoding.gpu.products import Tiling

    block = 8 if rows <= 8 else 16
    few = [Tiling(block, 16, 256, 1, 4, 5), Tiling(block, 16, 256, 1, 4, 5, bulk=True), Tiling(block, 32, 128, 1, 4, 6)]
    few += [Tiling(block, 32, 128, 1, 4, 6, bulk=True), Tiling(block, 16, 256, 1, 2, 5)]
    if rows == 1:
        single = [(4, 1024, 4, 1), (4, 1024, 4, 2), (8, 512, 4, 3), (2, 2048, 4, 1), (1, 2048, 4, 1), (16, 256, 4, 4)]
        single += [(4, 512, 2, 3), (8, 1024, 8, 2)]
        found = [Tiling(0, outputs, inputs, 1, warps, stages) for outputs, inputs, warps, stages in single] + few
        found += [replace(found[at], early=True) for at in (0, 2, 9)]
    elif rows <= 16:
        found = [*few, Tiling(block, 16, 512, 1, 4, 4), Tiling(block, 32, 256, 1, 4, 4, bulk=True)]
        found += [
            Tiling(block, 64, 128, 1, 4, 5, bulk=True),
            *(Tiling(block, 64, 128, split, 4, 5) for split in (1, 4)),
        ]
        found += [replace(found[at], early=True) for at in (0, 1, 3)]
    elif rows <= 64:
        found = [Tiling(64, 64, 128, split, 4, 4, bulk=split < 4) for split in (1, 2, 4)] + [
            Tiling(64, 64, 64, 1, 4, 6)
        ]
        found += [Tiling(64, 128, 64, split, 4, 4) for split in (1, 4)] + [Tiling(64, 64, 128, 1, 4, 4)]
        found += [Tiling(64, 32, 128, 1, 4, 4), Tiling(64, 16, 128, 1, 4, 4), replace(found[1], early=True)]
    else:
        found = [Tiling(128, 64, 64, split, 4, 5, bulk=split < 4) for split in (1, 2, 4)]
        found += [Tiling(128, 128, 64, split, 8, 4, bulk=split < 4) for split in (1, 2, 4)]
        found += [Tiling(64, 64, 128, 1, 4, 4), Tiling(128, 64, 64, 1, 4, 5), replace(found[1], early=True)]
    if eight:
        found = [each for each in found if not each.early and each.split == 1]
        found += [Tiling(0, 4, 2048, 1, 4, 2), Tiling(0, 8, 1024, 1, 4, 2)] if rows == 1 else []
    return found


def products(shape: Shape) -> Iterator[tuple[str, int, int]]:
    """A model's products: name, outputs, inputs."""
    heads = shape.heads * shape.size
    yield "qkv", heads + 2 * shape.kv_heads * shape.size, shape.hidden
    yield "out", shape.hidden, heads
    yield "gate_up", 2 * shape.inner, shape.hidden
    yield "down", shape.hidden, shape.inner
    yield "head", VOCABULARY[shape.name], shape.hidden


Task = tuple[int, int, int, Any, bool, tuple[str, ...]]  # rows, outputs, inputs, plan, eight bits, extras


class NoDevice:
    """A driver that knows what to compile for, and nothing else."""

    def __init__(self, capability: int) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> Any:
        """What to compile for."""
        return self._target

    def get_current_device(self) -> int:
        """A number that stands for the device."""
        return 0

    def get_current_stream(self, device: int) -> int:
        """A number that stands for a stream."""
        return 0


def without_device(capability: int) -> None:
    """Keep a process that only compiles away from the device, which takes time and memory to open."""
    from triton.runtime.driver import driver

    driver.set_active(NoDevice(capability))


def compile_one(task: Task) -> str:
    """Compile a product's kernels into Triton's cache, in a process that launches nothing."""
    from decoding.gpu.products import Extras, planned

    rows, outputs, inputs, by, eight, names = task

    def like(*size: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device="meta")

    made: dict[str, Any] = {
        "norm": like(inputs),
        "residual": like(rows, outputs),
        "scales": like(outputs),
        "gated": True,
    }
    extras = Extras(eps=EPS, **{name: made[name] for name in names})
    weight = like(outputs * (2 if extras.gated else 1), inputs, dtype=torch.int8 if eight else torch.bfloat16)
    try:
        for kernel, grid, arguments, options in planned(like(rows, inputs), weight, extras, by)[1]:
            kernel.warmup(*arguments, grid=grid, **options)
    except Exception as error:  # it will be told again where it is measured
        return f"{by}: {type(error).__name__}: {error}"[:300]
    return ""


def compile_all(bench: Bench, tasks: Iterable[Task]) -> None:
    """Compile everything at once."""
    if bench.pool is None:
        return
    chosen = list(
        {(by, inputs, eight, names): task for task in tasks for _, _, inputs, by, eight, names in [task]}.values()
    )
    begin = time.monotonic()
    failures = {failure for failure in bench.pool.map(compile_one, chosen, chunksize=1) if failure}
    bench.say(f"{len(chosen)} kernels compiled in {time.monotonic() - begin:.1f} s.")
    for failure in sorted(failures)[:5]:
        bench.say(f"- {failure}")


def sweep(bench: Bench, shape: Shape, rows: int, eight: bool = False) -> None:
    """A row of the table for every product of a model."""
    for name, outputs, inputs in products(shape):
        if bench.over:
            return
        try:
            measure(bench, f"{shape.name} {name}", outputs, inputs, rows, eight)
        except Exception as error:  # the others are to be measured
            bench.say(f"| {shape.name} {name} | {rows} | FAILED {type(error).__name__}: {str(error)[:150]!r} |")


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
        return linear(x, weight.to(x.dtype)) * extras.scales if eight else linear(x, weight)

    def seconds(call: Callable[[torch.Tensor], Any]) -> float:
        return bench.time([lambda weight=weight: call(weight) for weight in weights])

    base = {"name": name, "rows": rows, "outputs": outputs, "inputs": inputs, "int8": eight}
    other, error = seconds(theirs), steps(theirs(weights[0]), exact)
    bench.records.append(base | {"plan": None, "us": other * 1e6, "gbs": size / other / 1e9, "error": error})
    times = dict[Any, float]()
    own = plan(rows, outputs, inputs, x.dtype)
    worst = 0.0
    for by in dict.fromkeys([own, *plans(rows, eight)]):
        try:
            y = product(x, weights[0], extras, by)
            error = steps(y, exact)
            if not error <= 2.0 or not torch.equal(y, product(x, weights[0], extras, by)):
                raise ValueError(f"wrong by {error:.1f} steps, or not the same twice")
            worst = max(worst, error)
            times[by] = seconds(lambda weight, by=by: product(x, weight, extras, by))
        except Exception as failure:  # one plan may ask for too much shared memory
            bench.records.append(base | {"plan": asdict(by), "failure": f"{type(failure).__name__}: {failure}"[:300]})
            continue
        took = times[by]
        bench.records.append(base | {"plan": asdict(by), "us": took * 1e6, "gbs": size / took / 1e9, "error": error})
    if not times:
        raise RuntimeError(bench.records[-1]["failure"])
    late = min((by for by in times if not by.early), key=times.__getitem__)
    soon = min((by for by in times if by.early), key=times.__getitem__, default=None)
    bench.best[rows, outputs, inputs, eight] = late
    cells = [name, str(rows), f"{size / 1e6:.1f}", *cell(other, size), *cell(times[late], size)]
    cells += [f"{other / times[late]:.2f}", brief(late), *cell(times.get(own), size), brief(own)]
    cells += [*cell(times.get(soon), size), f"{worst:.2f}"]
    bench.say("| " + " | ".join(cells) + " |")


HEAD = "| product | rows | MB | cuBLAS us | GB/s | best us | GB/s | faster | plan | default us | GB/s | plan "
HEAD += "| early us | GB/s | error |"
RULE = "| --- " * 15 + "|"


def cell(seconds: float | None, size: int) -> tuple[str, str]:
    """Two cells: microseconds, and the bytes of the weight in that time."""
    return ("-", "-") if seconds is None else (f"{seconds * 1e6:.2f}", f"{size / seconds / 1e9:.0f}")


def brief(by: Any) -> str:
    """A plan in few letters: rows x outputs x inputs, split, warps, stages."""
    flags = (" bulk" if by.bulk else "") + (" early" if by.early else "")
    return f"{by.rows}x{by.outputs}x{by.inputs}/{by.split} w{by.warps} s{by.stages}{flags}"


def steps(y: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest error in rounding steps of bfloat16; numbers below a hundredth of the largest count as that."""
    size = torch.maximum(exact.abs(), exact.abs().max() / 100)
    return float(((y.double() - exact).abs() / (2**-7 * torch.exp2(size.log2().floor()))).nan_to_num(nan=1e9).max())


def small(shape: Shape) -> list[tuple[str, int, int, tuple[str, ...]]]:
    """The products of a layer with all they can do besides."""
    extras = {"qkv": ("norm",), "out": ("residual",), "gate_up": ("norm", "gated"), "down": ("residual",)}
    sizes = {name: (outputs, inputs) for name, outputs, inputs in products(shape)}
    sizes["gate_up"] = shape.inner, shape.hidden
    return [(name, *sizes[name], extras[name]) for name in extras]


def fused_plan(bench: Bench, rows: int, outputs: int, inputs: int, gated: bool, early: bool) -> Any:
    """The best plan that was measured for a product, without a second stage where it is gated."""
    from decoding.gpu.products import plan

    by = bench.best.get((rows, 2 * outputs if gated else outputs, inputs, False))
    by = plan(rows, outputs, inputs, torch.bfloat16) if by is None else by
    if gated:  # reads two blocks
        by = replace(by, split=1, outputs=max(by.outputs // 2, 16 if by.rows else 1))
    return replace(by, early=early)


def chain_tasks(bench: Bench, shape: Shape, rows: int) -> Iterator[Task]:
    """What a chain will need."""
    for name, outputs, inputs, extras in small(shape):
        wide = outputs * (2 if name == "gate_up" else 1)
        for early in (False, True):
            yield (
                rows,
                outputs,
                inputs,
                fused_plan(bench, rows, outputs, inputs, name == "gate_up", early),
                False,
                extras,
            )
            yield rows, wide, inputs, fused_plan(bench, rows, wide, inputs, False, early), False, ()


def chain(bench: Bench, shape: Shape, rows: int) -> None:
    """Layers without attention, one after the other: what each way of computing them takes."""
    from decoding.gpu.norm import norm
    from decoding.gpu.products import Extras, product
    from decoding.gpu.swiglu import swiglu

    layers, hidden = LAYERS[shape.name], shape.hidden
    sizes = {name: (outputs, inputs) for name, outputs, inputs in products(shape) if name != "head"}
    weights = {name: bench.random(layers, *size) for name, size in sizes.items()}
    first, scale = bench.random(rows, hidden), torch.ones(hidden, dtype=torch.bfloat16, device=bench.device)
    attended = bench.random(rows, sizes["out"][1])

    def by(name: str, early: bool, gated: bool = False) -> Any:
        outputs, inputs = sizes[name]
        return fused_plan(bench, rows, outputs // 2 if gated else outputs, inputs, gated, early)

    def torchs(x: torch.Tensor, at: int) -> torch.Tensor:
        linear(rms_norm(x, x.shape[1:], eps=EPS) * scale, weights["qkv"][at])
        x = x + linear(attended, weights["out"][at])
        gate, up = linear(rms_norm(x, x.shape[1:], eps=EPS) * scale, weights["gate_up"][at]).chunk(2, -1)
        return x + linear(silu(gate).mul_(up), weights["down"][at])

    def pointwise(
        multiply: Callable[[torch.Tensor, str, int], torch.Tensor],
    ) -> Callable[[torch.Tensor, int], torch.Tensor]:
        def layer(x: torch.Tensor, at: int) -> torch.Tensor:
            multiply(norm(x, None, scale, EPS)[1], "qkv", at)
            x, normed = norm(x, multiply(attended, "out", at), scale, EPS)
            return x + multiply(swiglu(multiply(normed, "gate_up", at)), "down", at)

        return layer

    def fused(early: bool) -> Callable[[torch.Tensor, int], torch.Tensor]:
        qkv, out, gate_up, down = by("qkv", early), by("out", early), by("gate_up", early, True), by("down", early)

        def layer(x: torch.Tensor, at: int) -> torch.Tensor:
            product(x, weights["qkv"][at], Extras(norm=scale, eps=EPS), qkv)
            x = product(attended, weights["out"][at], Extras(residual=x), out)
            gated = product(x, weights["gate_up"][at], Extras(norm=scale, eps=EPS, gated=True), gate_up)
            return product(gated, weights["down"][at], Extras(residual=x), down)

        return layer

    ways: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
        "cuBLAS, torch": torchs,
        "cuBLAS, our pointwise": pointwise(lambda x, name, at: linear(x, weights[name][at])),
        "ours, our pointwise": pointwise(lambda x, name, at: product(x, weights[name][at], by=by(name, False))),
        "ours early, our pointwise": pointwise(lambda x, name, at: product(x, weights[name][at], by=by(name, True))),
        "ours, all fused": fused(False),
        "ours, all fused, early": fused(True),
    }
    size = sum(weight[0].nbytes for weight in weights.values())
    cells, wanted = [shape.name, str(rows), f"{size / 1e6:.1f}"], None
    for way, layer in ways.items():

        def run(layer: Callable[[torch.Tensor, int], torch.Tensor] = layer) -> torch.Tensor:
            x = first
            for at in range(layers):
                x = layer(x, at)
            return x

        try:
            x = run().double()
            wanted = x if wanted is None else wanted
            apart = float((x - wanted).norm() / wanted.norm())
            took = bench.time([run]) / layers
            cells.append(f"{took * 1e6:.2f} us, {size / took / 1e9:.0f} GB/s, differs {apart:.4f}")
            bench.records.append({"chain": shape.name, "rows": rows, "way": way, "us": took * 1e6, "apart": apart})
        except Exception as error:  # another way may work
            cells.append(f"FAILED {type(error).__name__}: {str(error)[:100]!r}")
    if wanted is not None:
        bench.say("| " + " | ".join(cells) + " |")


CHAIN_HEAD = "| chain, a layer | rows | MB | cuBLAS, torch | cuBLAS, our pointwise | ours, our pointwise "
CHAIN_HEAD += "| ours early, our pointwise | ours, all fused | ours, all fused, early |\n" + "| --- " * 9 + "|"


def alone(width: int) -> dict[str, Task]:
    """The same product for one row and for more, by plans that add up in the same order."""
    from decoding.gpu.products import Tiling

    return {
        f"{rows} rows, blocks of {outputs}": (rows, 256, width, Tiling(max(rows, 16), outputs, 64), False, ())
        for rows in (1, 16, 64, 128)
        for outputs in (32, 64)
    }


def invariance(bench: Bench, width: int) -> None:
    """Say whether a row's bits depend on the number of rows."""
    from decoding.gpu.products import product

    x, weight = bench.random(128, width), bench.random(1, 256, width)[0]
    first = {way: product(x[: task[0]], weight, by=task[3])[0] for way, task in alone(width).items()}
    wanted = next(iter(first.values()))
    differ = [way for way, row in first.items() if not torch.equal(row, wanted)]
    found = f"not in {differ}" if differ else "everywhere"
    bench.say(f"\nRow 0 has the same bits as alone, in blocks of 32 outputs: {found}.")


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
    begin, pool = time.monotonic(), None
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    else:
        import_module("decoding.gpu.products")  # once for all processes
        processors = min(len(os.sched_getaffinity(0)), 32)
        pool = multiprocessing.get_context("fork").Pool(processors, without_device, (options.capability,))
    bench = Bench(torch.device(options.device), begin + options.seconds, pool)
    shapes = [shape for shape in (*SHAPES, *TINY) if shape.name in options.shapes]
    try:
        with torch.inference_mode():
            everything(bench, shapes, options.rows)
    finally:
        if pool is not None:
            pool.terminate()
        bench.say(f"\n{time.monotonic() - begin:.0f} s in all.")
        if out := os.environ.get("OUT"):
            Path(out, "products.md").write_text("\n".join(bench.lines) + "\n")
            Path(out, "products.jsonl").write_text("".join(json.dumps(each) + "\n" for each in bench.records))


def everything(bench: Bench, shapes: Sequence[Shape], rows: Sequence[int]) -> None:
    """All tables, the most telling first."""
    from decoding.gpu.products import plan

    few = [count for count in rows if count in (1, 16)]
    tasks: list[Task] = []
    for shape in shapes:
        for _, outputs, inputs in products(shape):
            for count in rows:
                own = plan(count, outputs, inputs, torch.bfloat16)
                tasks += [(count, outputs, inputs, by, False, ()) for by in [own, *plans(count, False)]]
                if count in (*few, 64):
                    tasks += [(count, outputs, inputs, by, True, ("scales",)) for by in [own, *plans(count, True)]]
    compile_all(bench, [*tasks, *alone(shapes[0].hidden).values()])
    if bench.device.type == "cuda":
        bench.say(torch.cuda.get_device_name(bench.device))
    with suppress(Exception):
        invariance(bench, shapes[0].hidden)
    bench.say(f"\n{HEAD}\n{RULE}")
    for count in rows[:2]:
        for shape in shapes:
            sweep(bench, shape, count)
    compile_all(bench, [task for shape in shapes for count in few for task in chain_tasks(bench, shape, count)])
    bench.say(f"\n{CHAIN_HEAD}")
    for count in few:
        for shape in shapes:
            if not bench.over:
                chain(bench, shape, count)
    for eight, counts in ((True, few), (False, rows[2:]), (True, [count for count in rows if count == 64])):
        if counts:
            bench.say(f"\n{'int8; cuBLAS widens the weight first' if eight else ''}\n{HEAD}\n{RULE}")
        for count in counts:
            for shape in shapes:
                sweep(bench, shape, count, eight)


if __name__ == "__main__":
    main()
