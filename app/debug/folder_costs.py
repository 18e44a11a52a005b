"""The data of a run folder for the Cost tab: its methods' steps after the first, in columns, as of recorded runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from analysis.metrics.columns import Array
from analysis.metrics.result import UnknownError
from analysis.metrics.selection import BASELINE
from analysis.metrics.step_costs import Pair, costs
from analysis.metrics.times import later_steps

from ..store.run_folders import OpenFolder, method_label

_MOST_STEPS, _MOST_METHODS = 50_000, 24  # of a folder: what a browser is sent and draws at once


def folder_costs(opened: OpenFolder) -> list[dict[str, Any]]:
    """Return a folder's methods that guess, as `RunCosts` returns recorded runs; `at` has the run and step of each."""
    return opened.results.get(("costs",), lambda: _costs_of(opened))


def _costs_of(opened: OpenFolder) -> list[dict[str, Any]]:
    chosen = [pair for pair in opened.methods() if pair[0] != BASELINE][:_MOST_METHODS]
    most = _MOST_STEPS // max(1, len(chosen))
    return [each for method, setting in chosen if (each := _method(opened, method, setting, most)) is not None]


def _method(opened: OpenFolder, method: str, setting: str, most: int) -> dict[str, Any] | None:
    """Return a method's first `most` steps; None if the folder does not record how many rows they read."""
    selection = opened.selection.where(method=method, setting=setting)
    steps, run_of_step = selection.steps, selection.run_of_step
    later = np.flatnonzero(steps.number("step") > 0)[:most]
    fed = steps.maybe("fed")[later]
    if not len(later) or np.isnan(fed).any():
        return None
    label = method_label(method)
    numbers = selection.runs.number("run")[run_of_step[later]]
    return {
        "id": f"{method}:{setting}",
        "label": label if setting == "default" else f"{label}, {setting}",
        "title": opened.name,
        "group": "",
        "family": "",
        "model": _only(opened, "model"),
        "recorded": ", ".join(filter(None, (_only(opened, "device"), _only(opened, "dtype")))),
        "speedup": None,
        "fed": _whole(fed),
        "wrote": _whole(steps.number("written")[later]),
        "at": np.stack([numbers, steps.number("step")[later]], axis=1).astype(int).tolist(),
        **_beside_plain(selection, later),
    }


def _beside_plain(selection: Any, later: Array) -> dict[str, Any]:
    """Return the measured speed-up and each step's drafting in autoregressive steps; None if there are none."""
    try:
        pair = Pair.of(selection)
        speed = float(costs(pair).speed)
        plain = float(np.mean(pair.plain.steps.number("total_ms")[later_steps(pair.plain)]))
    except UnknownError:
        return {"later_speedup": None, "drafting": None}
    drafting = selection.steps.maybe("draft_ms")[later] / plain
    return {
        "later_speedup": speed if math.isfinite(speed) else None,
        "drafting": None if np.isnan(drafting).any() else drafting.round(4).tolist(),
    }


def _only(opened: OpenFolder, column: str) -> str:
    """Return the one text of a column of the runs, or nothing where there are several."""
    texts = [text for text in opened.folder.runs[column].unique().to_pylist() if text]
    return str(texts[0])[:80] if len(texts) == 1 else ""


def _whole(values: Array) -> list[int]:
    whole: list[int] = values.astype(int).tolist()
    return whole
