"""Find the fastest plans of our attention kernel: time every plan that is worth trying, on a CUDA device.

    python -m benchmarks.attention_plans --seconds 60

A line for each shape, number of rows and of keys: the gigabytes of keys and values per second that the present plan and
the best one read, the time of torch's flash kernel for the text alone, without the rows' keys and without a mask, and
every plan's time. A plan is queries x keys of a tile, warps, stages, and splits. Each launch of a graph reads different
keys, more than the L2 cache holds; times are medians, in microseconds. All kernels are compiled first, by all cores.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import torch
import triton

from decoding.gpu import tree_attention
from decoding.gpu.tree_attention import AttentionPlan
from decoding.model.attention import pack

from .compile_kernels import META, compile_all
from .gpu_kernels import COLD, LAUNCHES, copied, need_cuda, reason, timed
from .kernel_cases import SHAPES, LayerSizes
from .kernel_cases.attention import KEYS, ROWS, inputs, ours


def main() -> None:
    """Time every plan, each line printed as soon as it is complete."""
    parser = argparse.ArgumentParser(description="Time the plans of the attention kernel.")
    parser.add_argument("--seconds", type=float, default=60.0, help="start no line after so many")
    parser.add_argument("--shapes", nargs="*", default=["7B", "135M", "1B"])
    parser.add_argument("--rows", nargs="*", type=int, default=ROWS)
    parser.add_argument("--keys", nargs="*", type=int, default=KEYS)
    options = parser.parse_args()
    need_cuda(parser, "cuda")
    device, begin = torch.device("cuda", torch.cuda.current_device()), time.monotonic()
    shapes = [shape for name in options.shapes for shape in SHAPES if shape.name == name]
    major, minor = torch.cuda.get_device_capability(device)
    print(torch.cuda.get_device_name(device))
    sizes = list(product(shapes, options.rows, options.keys))
    compile_all(launch, tasks(sizes, device), 10 * major + minor)
    print(f"compiled in {time.monotonic() - begin:.1f} s", flush=True)
    for shape, rows, keys in sizes:
        if time.monotonic() - begin > options.seconds:
            print(f"Ended after {options.seconds:.0f} s, before {shape.name}, {rows} rows, {keys} keys.")
            return
        print(line(shape, rows, keys, device), flush=True)


def tasks(
    sizes: Sequence[tuple[LayerSizes, int, int]], device: torch.device
) -> list[tuple[LayerSizes, int, AttentionPlan]]:
    """List the launches to compile, once each."""
    once = dict[object, tuple[LayerSizes, int, AttentionPlan]]()
    for shape, rows, keys in sizes:
        present = presently(shape, keys, device)
        for plan in (present, *plans(present)):
            shares = triton.next_power_of_2(plan.splits)
            once[shape, plan.queries, plan.keys, plan.warps, plan.stages, shares] = shape, rows, plan
    return [*once.values()]


def launch(task: tuple[LayerSizes, int, AttentionPlan]) -> None:
    """Launch a plan."""
    shape, rows, plan = task
    ours(*inputs(KEYS[0], shape, rows, META, torch.bfloat16), plan=plan)


def presently(shape: LayerSizes, keys: int, device: torch.device) -> AttentionPlan:
    """Return the plan that the engine takes, for any number of rows."""
    return tree_attention.plan(shape.kv_heads, shape.size, keys, torch.bfloat16, device)


def line(shape: LayerSizes, rows: int, keys: int, device: torch.device) -> str:
    """Measure all times of one size."""
    given = inputs(keys, shape, rows, device, torch.bfloat16)
    read = 2 * (given[-1] + rows) * shape.kv_heads * shape.size * 2  # bytes
    sets = [given, *(copied(given) for _ in range(min(COLD // read, LAUNCHES)))]
    present = presently(shape, keys, device)
    times, failed = dict[AttentionPlan, float](), list[str]()
    for plan in dict.fromkeys((present, *plans(present))):
        try:
            times[plan] = timed(partial(ours, plan=plan), sets, device, LAUNCHES)
        except Exception as error:  # too much shared memory, for one
            failed.append(f"{words(plan)} FAILED: {reason(error)[:60]}")
    best = min(times, key=times.__getitem__)
    flash = timed(by_flash, sets, device, LAUNCHES)
    rates = [f"{words(plan)} {times[plan]:.1f} us {read / times[plan] / 1e3:.0f} GB/s" for plan in (present, best)]
    others = [f"{words(plan)} {times[plan]:.1f}" for plan in sorted(times, key=times.__getitem__)]
    head = f"{shape.name} {rows} rows {given[-1]} keys: present {rates[0]}; best {rates[1]}; flash {flash:.1f} us"
    return "; ".join([head, *others, *failed])


def plans(present: AttentionPlan) -> Iterator[AttentionPlan]:
    """List the plans to try besides the present one."""
    splits = present.splits
    for queries in (16, 32, 64):
        for keys, warps, stages in ((64, 4, 2), (64, 4, 3), (64, 2, 3), (128, 4, 2), (32, 4, 4)):
            yield AttentionPlan(queries, keys, splits, warps, stages)
    for factor in (0.5, 2.0):
        if 1 <= splits * factor <= 64:
            yield replace(present, splits=int(splits * factor))


def by_flash(query: torch.Tensor, data: torch.Tensor, _: torch.Tensor, seen: torch.Tensor, first: int) -> torch.Tensor:
    """Run torch's flash kernel over the text."""
    key, value = data[:, :first].transpose(1, 2).unsqueeze(1)
    mixed: torch.Tensor = torch.ops.aten._scaled_dot_product_flash_attention(pack(query, key.shape[1]), key, value)[0]
    return mixed


def words(plan: AttentionPlan) -> str:
    """Write a plan in few letters."""
    return f"{plan.queries}x{plan.keys} w{plan.warps} s{plan.stages} /{plan.splits}"


if __name__ == "__main__":
    main()
