"""Tables of a run folder of any size, made up from a seed: what reads folders is tested without a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from analysis.store.query import Filter
from analysis.store.schema import NODES, RUNS, SCHEMAS, STEPS

CATEGORIES = ("code", "chat", "maths")
WORDS = (" the", " a", " def", "x", ";", "\n", " return", "<b>'\"`${x}")
ALL = Filter().sql()  # the query that chooses all steps


def made_tables(runs: int = 6, steps: int = 10, guesses: int = 3, seed: int = 0) -> dict[str, pa.Table]:
    """Return chains of `guesses` guesses, of which a step accepts the first few; two methods on the same questions."""
    rng = np.random.default_rng(seed)
    run, step, width = np.arange(runs), np.arange(steps), guesses + 1
    all_steps, all_nodes = runs * steps, runs * steps * width
    accepted = rng.integers(0, guesses + 1, all_steps)
    written = accepted.reshape(runs, steps) + 1
    depth = np.tile(np.arange(width), all_steps)
    words = pa.array(WORDS)
    of_runs: dict[str, Any] = {
        "run": run,
        "question": [f"q{number // 2}" for number in run],
        "category": [CATEGORIES[number // 2 % len(CATEGORIES)] for number in run],
        "turn": np.ones(runs, int),
        "method": ["draft_model", "medusa"] * (runs // 2) + ["draft_model"] * (runs % 2),
        "setting": ["default"] * runs,
        "engine": ["specscope"] * runs,
        "model": ["toy"] * runs,
        "reconstructed": [False] * runs,
    }
    of_steps = {
        "run": np.repeat(run, steps),
        "step": np.tile(step, runs),
        "start": 5 + (np.cumsum(written, axis=1) - written).ravel(),
        "drafted": np.full(all_steps, guesses),
        "accepted": accepted,
        "written": accepted + 1,
        "fed": np.full(all_steps, width),
        "nodes": np.full(all_steps, width),
        "text": words.take(pa.array(rng.integers(0, len(WORDS), all_steps))),
        "total_ms": np.round(rng.random(all_steps) * 20, 3),
    }
    of_nodes = {
        "run": np.repeat(run, steps * width),
        "step": np.tile(np.repeat(step, width), runs),
        "node": np.tile(np.arange(width), all_steps),
        "parent": depth - 1,
        "depth": depth,
        "role": pa.array(["root", "verify"]).take(pa.array(np.minimum(depth, 1))),
        "source": pa.array(["root", "draft"]).take(pa.array(np.minimum(depth, 1))),
        "token": rng.integers(0, 99, all_nodes),
        "text": words.take(pa.array(rng.integers(0, len(WORDS), all_nodes))),
        "accepted": (depth > 0) & (depth <= np.repeat(accepted, width)),
        "judged": (depth > 0) & (depth <= np.repeat(accepted, width) + 1),
        "wanted_text": words.take(pa.array(rng.integers(0, len(WORDS), all_nodes))),
        "p": rng.random(all_nodes),
        "q": rng.random(all_nodes),
        "confidence": rng.random(all_nodes),
    }
    filled = {RUNS: (runs, of_runs), STEPS: (all_steps, of_steps), NODES: (all_nodes, of_nodes)}
    return {name: _table(name, *given) for name, given in filled.items()}


def _table(name: str, rows: int, columns: dict[str, Any]) -> pa.Table:
    return pa.table(
        [
            pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
            for field in SCHEMAS[name]
        ],
        schema=SCHEMAS[name],
    )
