"""Records drawn from known chances, as a drafter of chains would leave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.metrics import Selection
from analysis.store.schema import NODES_SCHEMA, RUNS_SCHEMA, STEPS_SCHEMA

from .tables import run

CATEGORIES = ("code", "chat", "math")


def chains(
    seed: int,
    *,
    rates: Sequence[float] = (0.8, 0.7, 0.7, 0.6),
    questions: int = 24,
    steps: int = 30,
    spread: float = 0.1,
    lost: dict[str, Sequence[float]] | None = None,
) -> Selection:
    """Return chains whose guess i is right with chance rates[i], more or less by question.

    The questions' difficulty is the same for every seed, as that of one prompt set is; `lost` gives a category other
    rates.
    """
    random = np.random.default_rng(seed)
    easier = np.random.default_rng(99).normal(0, spread, questions)
    named = [CATEGORIES[place % len(CATEGORIES)] for place in range(questions)]
    chance = np.stack([np.asarray((lost or {}).get(name, rates)) for name in named]) + easier[:, None]
    hits = random.random((questions, steps, len(rates))) < chance[:, None, :]
    accepted = np.cumprod(hits, axis=2).sum(2).ravel()
    size = questions * steps
    columns = {
        "run": np.repeat(np.arange(questions), steps),
        "step": np.tile(np.arange(1, steps + 1), questions),
        "drafted": np.full(size, len(rates)),
        "accepted": accepted,
        "written": accepted + 1,
    }
    return Selection.of(
        pa.Table.from_pylist([run(place, f"q{place}", category=name) for place, name in enumerate(named)], RUNS_SCHEMA),
        filled(columns, STEPS_SCHEMA),
        NODES_SCHEMA.empty_table(),
    )


def filled(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Make a table of these columns, all others null."""
    size = len(next(iter(columns.values())))
    values = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(size, field.type)
        for field in schema
    ]
    return pa.table(values, schema=schema)
