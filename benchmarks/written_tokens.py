"""Count what N-Grammys' steps write by k and w, which no machine changes: assets/costs/tokens/ngrammys.json.

`python -m benchmarks.ngrammys_grid`; the Cost tab multiplies it with what passes over such trees cost.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path

from analysis.bench.methods import as_prompt
from analysis.cost.grid import GRID
from analysis.cost.sweep import K, W
from analysis.measured_here import machine_facts
from analysis.prompts.tasks import ENGLISH, read_tasks, spread, suite
from decoding import load
from decoding.embedded import TARGET
from decoding.engine import Engine
from decoding.types import JSON

SUITES = {"smollm2": ENGLISH, "pocket": TARGET}
QUESTIONS, TOKENS = 14, 48


def main() -> int:
    """Count and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ngrammys_grid", description=__doc__.split("\n")[0])
    parser.add_argument("--questions", type=int, default=QUESTIONS, metavar="N", help="default: %(default)s")
    parser.add_argument("--models", nargs="+", choices=SUITES, default=[*SUITES], help="default: all")
    parser.add_argument("--out", type=Path, default=GRID, metavar="FILE", help="default: %(default)s")
    arguments = parser.parse_args()
    models = [_counted(name, arguments.questions) for name in arguments.models]
    content = {"method": "ngrammys", "date": str(datetime.date.today()), "questions": arguments.questions}
    content |= {"max_new_tokens": TOKENS, "models": models}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(content) + "\n", encoding="utf-8")
    return 0


def _counted(name: str, questions: int) -> dict[str, JSON]:
    engine = load(name, device="cpu")
    tasks = spread(read_tasks(suite(SUITES[name])), questions)
    prompts = [engine.encode(as_prompt(engine, [("user", task.turns[0])])) for task in tasks]
    grid = [[_tokens_per_step(engine, prompts, k, w) for w in W] for k in K]
    versions = machine_facts(engine)["versions"]
    return {"model": name, "versions": versions, "k": [*K], "w": [*W], "tokens_per_step": grid}


def _tokens_per_step(engine: Engine, prompts: list[list[int]], k: int, w: int) -> float:
    """Return the mean of the steps after each run's first."""
    wrote = list[int]()
    for prompt in prompts:
        run = engine.decode(prompt, "ngrammys", {"k": k, "w": w}, max_new_tokens=TOKENS, record="off")
        wrote += [len(step.emitted) for step in list(run)[1:]]
    sys.stdout.write(f"{engine.model.card.name}: k {k}, w {w}: {sum(wrote) / len(wrote):.3f}\n")
    return round(sum(wrote) / len(wrote), 4)


if __name__ == "__main__":
    sys.exit(main())
