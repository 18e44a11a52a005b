"""Compares the choice of `tune` with a full grid of the same settings: `python -m benchmarks.tuning`.

Every candidate decodes every prompt in turn. Then tune's choice, the grid's best and autoregressive decoding decode
them all again, in turn: the fastest of many in a single measurement is partly the luckiest. The last column is how much
slower tune's advice (its choice, or not to speculate) is than the faster of the grid's best and autoregressive
decoding.
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

_PLAIN = "autoregressive"
_TIMES = 2  # that these three decode all prompts again
_HEADS = ["method", "settings", "time of the grid's", "tune's choice", "the grid's best", "advice", "slower"]


def speeds(
    engine: Engine,
    settings: Sequence[tuple[str, dict[str, JSON]]],
    ids: Sequence[list[int]],
    tokens: int,
    times: int = 1,
) -> list[float]:
    """Decode every prompt with each method and its settings in turn; return their tokens per second."""
    entries = [method_entry(engine, *each) for each in settings]
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
        choice = tune(engine, method, ids, max_new_tokens=tokens)  # what the user has tuned stays
    tuned = time.perf_counter() - begin
    settings, begin = candidates(method), time.perf_counter()
    grid = speeds(engine, [(method, each) for each in settings], ids, tokens)
    full = time.perf_counter() - begin
    best = settings[max(range(len(grid)), key=grid.__getitem__)]
    racers = [(_PLAIN, {}), (method, best), *([(method, choice["params"])] if choice["params"] != best else [])]
    plain, fastest, *others = speeds(engine, racers, ids, tokens, _TIMES)
    chosen = others[0] if others else fastest
    loss = 1 - (chosen if choice["speculate"] else plain) / max(fastest, plain)
    advice = "speculate" if choice["speculate"] else "do not speculate"
    gains = [f"{speed / plain:.2f}×" for speed in (chosen, fastest)]
    cells = [method, str(len(settings)), f"{100 * tuned / full:.1f}%", *gains, advice, f"{100 * loss:.1f}%"]
    sys.stderr.write(" | ".join(cells) + "\n")
    return cells


def report(model: str, prompts: int, tokens: int) -> str:
    """Compare all methods that the model can run."""
    engine = load(model, device="cpu")
    tasks = spread(read_tasks(suite(SUITES[model])), prompts)
    ids = [list(engine.encode(as_prompt(engine, [("user", task.turns[0])]))) for task in tasks]
    rows = [_HEADS, *(row(engine, method, ids, tokens) for method in CANDIDATES if engine.lacks(method) is None)]
    dtype = str(engine.model.dtype).removeprefix("torch.")
    return f"{conditions(model, dtype, 'CPU', f'{len(ids)} prompts, {tokens} tokens each')}.\n\n{table(rows)}"


def main() -> int:
    """Measure and report."""
    parser = flags("tuning", (__doc__ or "").split("\n")[0])
    parser.add_argument("--model", choices=SUITES, default=embedded.TARGET, help="default: %(default)s")
    parser.add_argument("--prompts", type=int, default=48, metavar="N", help="default: 48")
    parser.add_argument("--tokens", type=int, default=64, metavar="N", help="of an answer (default: 64)")
    given = parser.parse_args()
    publish("tuning", report(given.model, given.prompts, given.tokens), given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
