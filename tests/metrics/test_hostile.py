"""Folders come from strangers: should nonsense pass the checks of reading, it is answered all the same, in bounded time
and memory.
"""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from analysis.metrics import METRICS, Selection, compared, measure
from analysis.store.schema import NODES_SCHEMA, RUNS_SCHEMA, STEPS_SCHEMA

from .simulated import chains, filled

EDGES = (0, 1, 2, 63, 64, 65, 4096, 2**31 - 1)
COUNTS = (*EDGES, 2**53 + 1, 10**18)
TIMES = (0.0, 1e-300, 1.0, 1e18)
SHARES = (0.0, 5e-324, 0.5, 1.0)


def some(random: np.random.Generator, choices: tuple[float, ...], size: int, kind: type = float) -> list[object]:
    """Return numbers of these, nulls among them or throughout."""
    null = random.choice([0.0, 0.3, 1.0])
    return [None if random.random() < null else kind(choices[random.integers(len(choices))]) for _ in range(size)]


def nonsense(seed: int) -> Selection:
    """Return tables whose numbers are of the right types, and make no sense."""
    random = np.random.default_rng(seed)
    size, turns, width = int(random.integers(1, 9)), int(random.integers(1, 6)), int(random.integers(1, 5))
    texts = np.array(["", "autoregressive", "\x00", "verify", "'); DROP", "🙂"])
    runs: dict[str, object] = {"run": np.arange(size) * 7, "turn": np.full(size, 10**18)}
    runs |= {
        name: texts[random.integers(0, len(texts), size)] for name in ("question", "category", "method", "setting")
    }
    runs |= {"engine": ["x"] * size, "reconstructed": [False] * size, "prefill_seconds": some(random, TIMES, size)}
    runs["sampling"] = [
        ['{"temperature": "hot"}', '{"temperature": 1e400}', "{}"][random.integers(3)] for _ in range(size)
    ]
    total = size * turns
    steps: dict[str, object] = {"run": np.repeat(np.arange(size) * 7, turns), "step": np.tile(np.arange(turns), size)}
    steps |= {name: some(random, COUNTS, total, int) for name in ("start", "drafted", "fed")}
    steps |= {name: [COUNTS[random.integers(len(COUNTS))] for _ in range(total)] for name in ("accepted", "written")}
    steps |= {
        f"{name}_ms": some(random, TIMES, total) for name in ("draft", "forward", "accept", "commit", "other", "total")
    }
    steps |= {name: some(random, TIMES, total) for name in ("entropy", "experts")}
    count = total * width
    nodes: dict[str, object] = {"run": np.repeat(steps["run"], width), "step": np.repeat(steps["step"], width)}
    nodes |= {"node": np.tile(np.arange(width), total), "parent": np.tile(np.arange(width) - 1, total)}
    nodes |= {"depth": [EDGES[random.integers(len(EDGES))] for _ in range(count)]}
    nodes |= {"role": [("root", "verify", "explore")[random.integers(3)] for _ in range(count)]}
    nodes |= {"source": texts[random.integers(0, len(texts), count)]}
    nodes |= {name: random.random(count) < 0.5 for name in ("accepted", "judged")}
    nodes |= {name: some(random, EDGES, count, int) for name in ("sibling", "rank", "token", "wanted")}
    nodes |= {name: some(random, SHARES, count) for name in ("p", "q", "confidence", "overlap")}
    tables = [filled(*pair) for pair in ((runs, RUNS_SCHEMA), (steps, STEPS_SCHEMA), (nodes, NODES_SCHEMA))]
    return Selection.of(*tables)


@pytest.mark.parametrize("seed", range(30))
def test_nonsense_is_answered(seed: int) -> None:
    """No error, no warning, no number that JSON cannot hold, no table of a billion cells."""
    record = nonsense(seed)
    for key in METRICS:
        result = measure(key, record)
        assert len(json.dumps(result, allow_nan=False)) < 2_000_000
    json.dumps(compared(record, nonsense(seed + 1)), allow_nan=False)


def test_many_questions_cost_no_more_memory_than_some() -> None:
    """They are drawn in groups: the interval is the one that all of them would give."""
    many = chains(1, questions=20_000, steps=3)
    result = measure("mean_acceptance_length", many)
    few = measure("mean_acceptance_length", chains(1, questions=4000, steps=3))
    widths = [each["high"] - each["low"] for each in (result, few)]  # type: ignore[operator]
    assert widths[0] == pytest.approx(widths[1] / np.sqrt(5), rel=0.1)
    assert [row[1] for row in measure("by_category", many)["rows"]] == [6667, 6667, 6666]
    assert "no difference" in compared(many, chains(2, questions=20_000, steps=3))["sentence"]


def test_as_many_categories_as_questions_are_bounded() -> None:
    size = 30_000
    names = [f"q{number}" for number in range(size)]
    runs = {"run": np.arange(size), "turn": np.ones(size, int), "question": names, "category": names}
    runs |= {"method": ["m"] * size, "setting": names, "engine": ["e"] * size, "reconstructed": [False] * size}
    ones = np.ones(size, int)
    steps = {"run": np.arange(size), "step": ones, "accepted": ones, "written": 2 * ones, "drafted": ones}
    record = Selection.of(filled(runs, RUNS_SCHEMA), filled(steps, STEPS_SCHEMA), NODES_SCHEMA.empty_table())
    begun = time.process_time()
    assert len(measure("by_category", record)["rows"]) == 100
    compared(record, record)
    assert time.process_time() - begun < 5  # quadratic, it would take minutes
