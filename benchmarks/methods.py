"""The cost of methods besides the target, on pocket and the CPU: `python -m benchmarks.methods`.

It measures their work as a share of a step, n-gram tables of a whole vocabulary, and look-ups in a datastore of 100 MB.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from analysis.bench.methods import as_prompt
from analysis.prompts.tasks import read_tasks, suite
from decoding import embedded, load
from decoding.engine import Engine
from decoding.methods import METHODS
from decoding.types import Step
from lab.pocket.suite import write_store
from lab.training.datastore import build_store

from .measure import command, conditions, table

TOKENS, EVERY = 64, 6
TEXT_BYTES = 77_000_000  # makes a datastore of about 100 MB
DRAFTING = ("draft_model", "kangaroo", "eagle3", "dflash", "ouroboros")  # their own work is a network's


def steps_of(engine: Engine, method: str) -> list[Step]:
    """Decode questions of every kind, and return the steps after each prompt's."""
    steps: list[Step] = []
    for task in read_tasks(suite(embedded.TARGET))[::EVERY]:
        prompt = as_prompt(engine, [("user", task.turns[0])])
        steps += list(engine.decode(prompt, method, max_new_tokens=TOKENS, record="off"))[1:]
    return steps


def share(steps: Sequence[Step]) -> float:
    """Return the share of the steps' time in the method itself, which proposes and observes."""
    return sum(step.timing.draft_ms for step in steps) / sum(step.timing.total_ms for step in steps)


def own_work(engine: Engine) -> str:
    """Measure a row per method."""
    rows = [["method", "propose and observe, share of a step", "bar"]]
    for name in METHODS:
        network = " (runs a network)" if name in DRAFTING else ""
        rows.append([name + network, f"{100 * share(steps_of(engine, name)):.1f}%", "" if network else "25%"])
    return table(rows)


def tables_seconds() -> float:
    """Time building n-gram tables for a model without any."""
    from decoding.parts.tables import load_tables

    engine = load(embedded.TARGET, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        load_tables(engine.model, lambda what, done: None, folder=Path(folder), head=engine.codec.encode("")[:4])
        return time.perf_counter() - begin


def look_ups() -> list[list[str]]:
    """Build a datastore of generated text, and time a step's look-ups in it."""
    with tempfile.TemporaryDirectory() as folder:
        text, store = Path(folder) / "text.jsonl", Path(folder) / "store.safetensors"
        write_store(text, 7, TEXT_BYTES)
        begin = time.perf_counter()
        built = build_store([text], load(embedded.TARGET, device="cpu").codec, store)
        took = time.perf_counter() - begin
        begin = time.perf_counter()
        engine = load(embedded.TARGET, device="cpu", datastore=str(store))
        opened = time.perf_counter() - begin
        steps_of(engine, "rest")  # the pages that are read stay in memory
        steps = sorted(step.timing.draft_ms for step in steps_of(engine, "rest"))
    name = f"datastore of {built.size / 1e6:.0f} MB, {built.tokens / 1e6:.1f} million tokens"
    return [
        [f"{name}: built, s", f"{took:.0f}", ""],
        ["opened with its model and proven whole, s", f"{opened:.1f}", ""],
        ["a step's look-up and tree, ms (median)", f"{statistics.median(steps):.2f}", "1"],
        ["a step's look-up and tree, ms (90th percentile)", f"{steps[int(0.9 * len(steps))]:.2f}", ""],
    ]


def report() -> str:
    """Measure everything."""
    torch.set_num_threads(2)
    rows = [["", "measured", "bar"], ["n-gram tables of 4096 tokens, s", f"{tables_seconds():.1f}", "20"], *look_ups()]
    where = conditions("pocket", "float32", "CPU", f"{torch.get_num_threads()} threads")
    return "\n\n".join([f"{where}.", own_work(load(embedded.TARGET, device="cpu")), table(rows)])


if __name__ == "__main__":
    command("methods", __doc__, report)
