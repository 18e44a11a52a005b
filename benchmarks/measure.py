"""Functions shared by benchmarks: timers, tables, the command line, and the lines at the top of a report."""

from __future__ import annotations

import argparse
import datetime
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from analysis.bench.peers.transformers import Stopwatch
from analysis.prompts.tasks import ENGLISH
from decoding import embedded
from decoding.engine import Engine
from decoding.types import Step

SUITES = {embedded.SMOLLM2: ENGLISH, embedded.TARGET: embedded.TARGET}  # of questions, by model


def transformers_ms(model: Any, ids: Sequence[int], tokens: int) -> float:
    """Time transformers' greedy `generate`: milliseconds per token, the prompt's pass excluded."""
    watch = Stopwatch()
    inputs = torch.tensor([list(ids)], device=model.device)
    model.generate(
        inputs,
        attention_mask=torch.ones_like(inputs),
        do_sample=False,
        max_new_tokens=tokens,
        min_new_tokens=tokens,
        pad_token_id=0,
        streamer=watch,
    )
    return 1000 * (watch.times[-1] - watch.times[1]) / (len(watch.times) - 2)


def engine_steps(engine: Engine, ids: Sequence[int], tokens: int, **options: Any) -> list[Step]:
    """Run once, and return the steps after the prompt's."""
    run = engine.decode(list(ids), max_new_tokens=tokens, end_tokens=(), **options)
    return list(run)[1:]


def engine_ms(engine: Engine, ids: Sequence[int], tokens: int, **options: Any) -> float:
    """Time a run by the wall clock: milliseconds per token, the prompt's step excluded."""
    run = engine.decode(list(ids), max_new_tokens=tokens, end_tokens=(), **options)
    next(run)
    begin = time.perf_counter()
    count = sum(len(step.emitted) for step in run)
    return 1000 * (time.perf_counter() - begin) / count


def in_turn(rounds: int, timers: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Run every timer once per round, after one warm-up round, so that a machine's drift affects all alike."""
    for timer in timers.values():
        timer()
    results: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            results[name].append(timer())
    return results


def ratio(above: list[float], below: list[float]) -> float:
    """Return the median of the ratios round by round, which does not depend on the machine's drift."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table; the first row is its head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def conditions(*facts: str, packages: Sequence[str] = ("torch",)) -> str:
    """Write the conditions of a report: the given facts, the processor, versions of packages, and the date."""
    versions = (f"{package} {version(package)}" for package in packages)
    return ", ".join([*facts, platform.machine(), *versions, str(datetime.date.today())])


def flags(name: str, description: str | None) -> argparse.ArgumentParser:
    """Start the parser of a benchmark, which must read its flags first, so that a wrong one costs no minutes."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--out", help="also write the report to this file")
    return parser


def publish(name: str, text: str, out: str | None) -> None:
    """Print a report with its command on top, and write it to a file if one is named."""
    text = f"Written by `python -m benchmarks.{name} --out benchmarks/{name}.md`.\n\n{text}"
    print(text)
    if out:
        Path(out).write_text(text + "\n", encoding="utf-8")


def command(name: str, description: str | None, report: Callable[[], str]) -> None:
    """Run a benchmark without further flags: measure and publish."""
    out = flags(name, description).parse_args().out
    publish(name, report(), out)
