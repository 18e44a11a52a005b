"""Count the tokens per step by the size of trees, on every machine the same: assets/costs/tokens/METHOD.json.

`python -m benchmarks.written_tokens`; the Cost tab divides them by the cost of passes over such trees. N-Grammys' trees
are k chains of w guesses; Medusa's are grown from the accuracies of its heads, guess by guess.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path

from analysis.bench.methods import as_prompt
from analysis.cost.grid import COUNTED
from analysis.cost.sweep import K, W
from analysis.measured_here import machine_facts
from analysis.prompts.tasks import read_tasks, spread, suite
from decoding import load
from decoding.engine import Engine
from decoding.parts.heads import Guesser
from decoding.parts.medusa_tree import expected_length, grow
from decoding.types import JSON

from .measure import SUITES

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)  # guesses of a Medusa tree
QUESTIONS, TOKENS = 14, 48


def main() -> int:
    """Count and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.written_tokens", description=__doc__.split("\n")[0])
    parser.add_argument("--questions", type=int, default=QUESTIONS, metavar="N", help="default: %(default)s")
    parser.add_argument("--models", nargs="+", choices=SUITES, default=[*SUITES], help="default: all")
    parser.add_argument("--methods", nargs="+", choices=COUNTED, default=[*COUNTED], help="default: all")
    parser.add_argument(
        "--out", type=Path, default=COUNTED["medusa"].parent, metavar="FOLDER", help="default: %(default)s"
    )
    arguments = parser.parse_args()
    for method in arguments.methods:
        models = [_counted(name, method, arguments.questions) for name in arguments.models]
        content = {"method": method, "date": str(datetime.date.today()), "questions": arguments.questions}
        content |= {"max_new_tokens": TOKENS, "models": models}
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / COUNTED[method].name).write_text(json.dumps(content) + "\n", encoding="utf-8")
    return 0


def _counted(name: str, method: str, questions: int) -> dict[str, JSON]:
    engine = load(name, device="cpu")
    tasks = spread(read_tasks(suite(SUITES[name])), questions)
    prompts = [engine.encode(as_prompt(engine, [("user", task.turns[0])])) for task in tasks]
    counts = {"ngrammys": _grid, "medusa": _by_size}[method](engine, prompts)
    return {"model": name, "versions": machine_facts(engine)["versions"], **counts}


def _grid(engine: Engine, prompts: list[list[int]]) -> dict[str, JSON]:
    grid = [[_tokens_per_step(engine, prompts, "ngrammys", {"k": k, "w": w}) for w in W] for k in K]
    return {"k": [*K], "w": [*W], "tokens_per_step": grid}


def _by_size(engine: Engine, prompts: list[list[int]]) -> dict[str, JSON]:
    heads: Guesser = engine.part("medusa")
    assert heads.accuracies is not None
    expected = [round(expected_length(grow(heads.accuracies, size), heads.accuracies), 4) for size in SIZES]
    wrote = [_tokens_per_step(engine, prompts, "medusa", {"size": size}) for size in SIZES]
    return {"sizes": [*SIZES], "tokens_per_step": wrote, "expected": expected}


def _tokens_per_step(engine: Engine, prompts: list[list[int]], method: str, params: dict[str, JSON]) -> float:
    """Return the mean of the steps after each run's first."""
    wrote = list[int]()
    for prompt in prompts:
        run = engine.decode(prompt, method, params, max_new_tokens=TOKENS, record="off")
        wrote += [len(step.emitted) for step in list(run)[1:]]
    sys.stdout.write(f"{engine.model.card.name}: {method} {params}: {sum(wrote) / len(wrote):.3f}\n")
    return round(sum(wrote) / len(wrote), 4)


if __name__ == "__main__":
    sys.exit(main())
