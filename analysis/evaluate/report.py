"""The report of a finished evaluation: every method and setting in one row, beside autoregressive decoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from decoding.types import JSON

from ..store.folder import read_table
from ..store.schema import NODES, RUNS, STEPS
from .plan import BASE, DEFAULT


def report(folder: Path) -> dict[str, JSON]:
    """Return the numbers of every method and setting of a finished folder, side by side."""
    steps, nodes = (pq.read_metadata(folder / f"{name}.parquet").num_rows for name in (STEPS, NODES))
    runs = (
        read_table(folder / f"{RUNS}.parquet", RUNS)
        .select(
            ["question", "turn", "method", "setting", "finish", "error", "new_tokens", "steps", "ids"]
            + ["prefill_seconds", "decode_seconds", "tokens_per_second"]
        )
        .to_pylist()
    )
    entries = dict.fromkeys((run["method"], run["setting"]) for run in runs)
    by_entry = {entry: [run for run in runs if (run["method"], run["setting"]) == entry] for entry in entries}
    base = by_entry.get((BASE, DEFAULT), [])
    errors = Counter(run["error"] or "" for run in runs if run["finish"] == "error")
    rows = [_row(method, setting, by_entry[method, setting], base) for method, setting in entries]
    return {
        "folder": str(folder),
        "questions": len({run["question"] for run in runs}),
        "runs": len(runs),
        "failed": sum(run["finish"] == "error" for run in runs),
        "errors": [{"sentence": sentence, "runs": count} for sentence, count in errors.most_common()],
        "steps": steps,
        "nodes": nodes,
        "rows": rows,
    }


def _row(method: str, setting: str, runs: list[dict[str, Any]], base: list[dict[str, Any]]) -> dict[str, JSON]:
    good, usual = _good(runs), _good(base)
    shared = good.keys() & usual.keys()
    tokens, steps, speed = _sum(good.values(), "new_tokens"), _sum(good.values(), "steps"), _speed(good.values())
    alike, other = (_speed(each[key] for key in shared) for each in (good, usual))
    return {
        "method": method,
        "setting": setting,
        "runs": len(runs),
        "failed": len(runs) - len(good),
        "new_tokens": tokens,
        "steps": steps,
        "mean_acceptance_length": tokens / steps if steps else None,
        "tokens_per_second": speed,
        "speedup_vs_autoregressive": alike / other if alike and other else None,
        "prefill_seconds": _sum(good.values(), "prefill_seconds") / len(good) if good else None,
        "same_texts": sum(good[key]["ids"] == usual[key]["ids"] for key in shared) / len(shared) if shared else None,
    }


def _good(runs: Iterable[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the runs that did not fail, by question and turn."""
    return {(run["question"], run["turn"]): run for run in runs if run["finish"] != "error"}


def _speed(runs: Iterable[dict[str, Any]]) -> float | None:
    """Return tokens per second, without each run's first step."""
    timed = [run for run in runs if run["tokens_per_second"] is not None]
    seconds = _sum(timed, "decode_seconds")
    return sum(run["tokens_per_second"] * run["decode_seconds"] for run in timed) / seconds if seconds else None


def _sum(runs: Iterable[dict[str, Any]], name: str) -> Any:
    return sum(run[name] for run in runs if run[name] is not None)
