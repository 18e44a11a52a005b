"""The device and the results of the benchmarks of products."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .compile_kernels import META, compile_all
from .gpu_kernels import row, timed
from .kernel_cases import LayerSizes

VOCABULARY = {"135M": 49_152, "1B": 128_256, "7B": 32_000, "tiny": 200}
EPS = 1e-5
Multiplication = tuple[int, int, int, Any, bool, tuple[str, ...]]  # rows, outputs, inputs, plan, eight bits, extras


@dataclass
class Bench:
    """The device of a benchmark, its time limit, and its results so far."""

    device: torch.device
    end: float
    capability: int
    best: dict[tuple[int, int, int, bool], Any] = field(default_factory=dict)  # by rows, outputs, inputs, eight bits
    lines: list[str] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    def say(self, line: str) -> None:
        """Print a line, and collect it for the file."""
        print(line, flush=True)
        self.lines.append(line)

    def heads(self, cells: Sequence[str], title: str = "") -> None:
        """Begin a table."""
        self.say(f"\n{title}\n{row(cells)}\n{row(['---'] * len(cells))}")

    @property
    def over(self) -> bool:
        """Return True if the time is up."""
        return time.monotonic() > self.end

    def time(self, calls: Sequence[Callable[[], Any]]) -> float:
        """Return the seconds of one call, with all calls captured in one graph."""
        return timed(lambda call: call(), [(call,) for call in calls], self.device, len(calls)) / 1e6

    def random(self, *size: int) -> torch.Tensor:
        """Draw random bfloat16 numbers; those of a weight are small, so that sums are about one."""
        scale = size[-1] ** -0.5 if len(size) == 3 else 1.0
        return torch.empty(size, dtype=torch.bfloat16, device=self.device).normal_(0.0, scale)

    def compile(self, tasks: Sequence[Multiplication]) -> None:
        """Compile the kernels of all tasks at once."""
        if self.device.type == "cpu":
            return
        chosen = list({task[2:]: task for task in tasks}.values())
        begin = time.monotonic()
        failures = compile_all(launch, chosen, self.capability)
        self.say(f"{len(chosen)} kernels compiled in {time.monotonic() - begin:.1f} s.")
        for failure in sorted(failures)[:5]:
            self.say(f"- {failure}")


def launch(task: Multiplication) -> None:
    """Launch a product on tensors without data."""
    from decoding.gpu.products import Extras, product

    rows, outputs, inputs, by, eight, names = task

    def like(*size: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device=META)

    made = {"norm": like(inputs), "residual": like(rows, outputs), "scales": like(outputs)}
    extras = Extras(eps=EPS, gated="gated" in names, **{name: made[name] for name in names if name != "gated"})
    weight = like(outputs * (2 if extras.gated else 1), inputs, dtype=torch.int8 if eight else torch.bfloat16)
    product(like(rows, inputs), weight, extras, by)


def products(shape: LayerSizes) -> Iterator[tuple[str, int, int]]:
    """List a model's products: name, outputs, inputs."""
    heads = shape.heads * shape.size
    yield "qkv", heads + 2 * shape.kv_heads * shape.size, shape.hidden
    yield "out", shape.hidden, heads
    yield "gate_up", 2 * shape.inner, shape.hidden
    yield "down", shape.hidden, shape.inner
    yield "head", VOCABULARY[shape.name], shape.hidden
