"""Measure c(T) of a real model on this machine's CPU, for assets/costs/: what a pass over T rows costs.

python -m benchmarks.pass_costs --model smollm2 --costs assets/costs/NAME.json
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from decoding import load
from decoding.engine import Engine

from .measure import in_turn, step_ms

ROWS = (1, 2, 4, 6, 8, 10, 16, 32, 64)
TOKENS, ROUNDS = 12, 5


def costs(engine: Engine, context: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """Measure passes after a text of so many tokens, in turn, each as the median of its rounds."""
    prompt = [1 + position % 97 for position in range(context)]
    timers = {str(rows): partial(step_ms, engine, prompt, TOKENS, rows) for rows in ROWS}
    times = in_turn(rounds, timers)
    return {
        "context": context,
        "rows": [*ROWS],
        "milliseconds": [round(statistics.median(times[str(rows)]), 4) for rows in ROWS],
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pass_costs", description=__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--contexts", default="128,1024")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--costs", help="the file, as assets/costs/ keeps it for named machines")
    flags = parser.parse_args()
    engine = load(flags.model)
    header = engine.decode([1], max_new_tokens=1).trace.header
    shapes = [
        {"shape": flags.model, "parameters": header.model.parameters} | costs(engine, int(context), flags.rounds)
        for context in flags.contexts.split(",")
    ]
    report = {
        "device": header.processor,
        "date": str(datetime.date.today()),
        "dtype": header.dtype,
        "threads": torch.get_num_threads(),
        "versions": f"torch {version('torch')}, transformers {version('transformers')}",
        "shapes": shapes,
    }
    print(json.dumps(report, indent=1))
    if flags.costs:
        Path(flags.costs).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
