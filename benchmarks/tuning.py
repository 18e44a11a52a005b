"""Compares what `tune` finds with a full grid of the same settings: `python -m benchmarks.tuning`.

Every candidate decodes every prompt in turn. Then tune's choice and the grid's best decode them all once more, in turn:
the fastest of many in a single measurement is partly the luckiest.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from unittest.mock import patch

from analysis.bench.methods import as_prompt, method_entry
from analysis.candidates import CANDIDATES
from analysis.prompts.tasks import read_tasks, spread, suite
from analysis.tuning import candidates, tune
from decoding import embedded, load
from decoding.engine import Engine
from decoding.types import JSON

from .measure import SUITES, conditions, flags, publish, table

_TIMES = 4  # that the two best decode all prompts again


def speeds(
    engine: Engine,
    method: str,
    settings: Sequence[dict[str, JSON]],
    ids: Sequence[list[int]],
    tokens: int,
    times: int = 1,
) -> list[float]:
    """Let a method with each of some settings decode every prompt in turn; returns their tokens per second."""
    entries = [method_entry(engine, method, each) for each in settings]
    for _ in range(times):
        for entry in entries:
            entry.memory.clear()  # of these very answers
        for each in ids:
            for entry in entries:
                entry.runs.append(entry.runner(each, tokens, engine.codec.end_tokens))
    return [entry.speed or 0.0 for entry in entries]


def row(engine: Engine, method: str, ids: Sequence[list[int]], tokens: int) -> list[str]:
    """Tune a method, measure the grid, and compare."""
    engine.prepare(method, lambda what, share: None)  # both need it
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, XDG_CACHE_HOME=folder):
        found = tune(engine, method, ids, max_new_tokens=tokens)  # what the user has tuned stays
    tuned = time.perf_counter() - begin
    settings, begin = candidates(method), time.perf_counter()
    grid = speeds(engine, method, settings, ids, tokens)
    full = time.perf_counter() - begin
    best = settings[max(range(len(grid)), key=grid.__getitem__)]
    chosen, fastest = speeds(engine, method, [found["params"], best], ids, tokens, _TIMES)
    loss = 0.0 if found["params"] == best else 1 - chosen / fastest
    speculate = "speculate" if found["speculate"] else "do not speculate"
    cells = [method, str(len(settings)), f"{100 * tuned / full:.0f}%", f"{100 * loss:+.1f}%", speculate]
    sys.stderr.write(" | ".join(cells) + "\n")
    return cells


def report(model: str, prompts: int, tokens: int) -> str:
    """Compare all methods that the model has what it needs for."""
    engine = load(model, device="cpu")
    tasks = spread(read_tasks(suite(SUITES[model])), prompts)
    ids = [list(engine.encode(as_prompt(engine, [("user", task.turns[0])]))) for task in tasks]
    rows = [["method", "settings", "time of the grid's", "slower than the grid's best", "verdict"]]
    rows += [row(engine, method, ids, tokens) for method in CANDIDATES if engine.lacks(method) is None]
    dtype = str(engine.model.dtype).removeprefix("torch.")
    return f"{conditions(model, dtype, 'CPU', f'{len(ids)} prompts, {tokens} tokens each')}.\n\n{table(rows)}"


def main() -> int:
    """Measure and report."""
    parser = flags("tuning", (__doc__ or "").split("\n")[0])
    parser.add_argument("--model", choices=SUITES, default=embedded.TARGET, help="default: %(default)s")
    parser.add_argument("--prompts", type=int, default=12, metavar="N", help="default: 12")
    parser.add_argument("--tokens", type=int, default=64, metavar="N", help="of an answer (default: 64)")
    given = parser.parse_args()
    publish("tuning", report(given.model, given.prompts, given.tokens), given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
