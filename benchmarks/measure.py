"""What both benchmarks share: timing a transformers model and our engine on the same weights and prompt."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from analysis.bench.peers.transformers import Stopwatch
from decoding.engine import Engine
from decoding.methods import Context, Method
from decoding.params import Params, param
from decoding.tree import Builder
from decoding.types import Draft, Step, Verdict


@dataclass(frozen=True, slots=True)
class GuessesParams(Params):
    """How many guesses."""

    count: int = param(7, label="Guesses", help="Nodes below the root", min=0, max=512)


class Guesses(Method):
    """Proposes a chain of wrong guesses: every step costs what `count` + 1 nodes cost and emits one token."""

    name = "guesses"
    label = "Wrong guesses"
    paper = "none"
    Params = GuessesParams

    def __init__(self, context: Context, params: GuessesParams) -> None:
        self._context, self._count = context, params.count

    def propose(self) -> Draft:
        """A chain of token 0, which random weights hardly ever choose."""
        tree = Builder(self._context.text[-1])
        tree.chain([0] * self._count, ["guess"] * self._count)
        return tree.draft()

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Nothing to learn."""


def transformers_ms(model: Any, ids: Sequence[int], tokens: int) -> float:
    """Milliseconds per token of transformers' greedy `generate`, the prompt's pass excluded."""
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
    """The steps of one run behind the prompt's own."""
    run = engine.decode(list(ids), max_new_tokens=tokens, end_tokens=(), **options)
    return list(run)[1:]


def engine_ms(engine: Engine, ids: Sequence[int], tokens: int, **options: Any) -> float:
    """Milliseconds per token by the wall clock, the prompt's step excluded."""
    run = engine.decode(list(ids), max_new_tokens=tokens, end_tokens=(), **options)
    next(run)
    begin = time.perf_counter()
    count = sum(len(step.emitted) for step in run)
    return 1000 * (time.perf_counter() - begin) / count


def step_ms(engine: Engine, ids: Sequence[int], tokens: int, nodes: int) -> float:
    """Milliseconds of a step of `nodes` nodes: the median over a run."""
    steps = engine_steps(engine, ids, tokens, method=Guesses, params={"count": nodes - 1}, record="off")
    return statistics.median(step.timing.total_ms for step in steps)


def in_turn(rounds: int, timers: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Run every timer once a round, after one warm-up round, so that a drifting machine treats all alike."""
    for timer in timers.values():
        timer()
    results: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            results[name].append(timer())
    return results


def ratio(above: list[float], below: list[float]) -> float:
    """The median of the ratios round by round, which a drift of the machine's speed leaves alone."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Markdown; the first row is the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def publish(text: str, out: str | None) -> None:
    """Print a report, and write it to a file where one is named."""
    print(text)
    if out:
        Path(out).write_text(text + "\n", encoding="utf-8")


def command(description: str | None, report: Callable[[], str]) -> None:
    """What a benchmark does when it is run: measure and publish."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", help="write the report here too")
    out = parser.parse_args().out  # first: a wrong flag must not cost minutes
    publish(report(), out)
