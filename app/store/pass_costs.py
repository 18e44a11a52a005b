"""The curves of the Cost tab: the cost of passes on measured machines, and on this one."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.cost.curves import SHIPPED, Machine, PassCurve, plain, read_curves
from analysis.cost.grid import TreeCosts, read_drafting, read_trees
from decoding.user_cache import user_cache

_MOST_FILES = 32
_log = logging.getLogger(__name__)

CurveFacts = dict[str, Any]  # as the page gets them


def pass_costs() -> list[CurveFacts]:
    """Return every curve, first those measured on this machine."""
    home = user_cache()
    here = [] if home is None else _files(home / "costs")
    return [*(curve for path in here for curve in _facts_of(path, here=True)), *shipped_costs()]


def shipped_costs(folder: Path = SHIPPED) -> list[CurveFacts]:
    """Return the curves of named machines."""
    return [curve for path in _files(folder) for curve in _facts_of(path, here=False)]


def _files(folder: Path) -> Sequence[Path]:
    try:
        return sorted(folder.glob("*.json"))[:_MOST_FILES]
    except OSError:
        return []


def _facts_of(path: Path, here: bool) -> list[CurveFacts]:
    trees, heads = read_trees(path, _log.warning), read_drafting(path, "medusa")
    return [
        _facts(path, machine, curve, here)
        | {
            "trees": _tree_facts(trees.get((curve.shape, curve.context))),
            "heads": _in_passes(heads.get(curve.shape), curve),
        }
        for machine, curve in read_curves(path, _log.warning)
    ]


def _in_passes(milliseconds: float | None, curve: PassCurve) -> float | None:
    """Return a time in passes over one token; None if one of both was not measured."""
    single = dict(zip(curve.rows, curve.milliseconds, strict=True)).get(1)
    return None if milliseconds is None or single is None else round(milliseconds / single, 4)


def _tree_facts(trees: TreeCosts | None) -> dict[str, Any] | None:
    """Return the cost of passes over trees of k chains of w guesses; None if it was not measured."""
    if trees is None:
        return None
    single = trees.single_milliseconds
    costs = [[round(each / single, 4) for each in line] for line in trees.milliseconds]
    return {"k": list(trees.k), "w": list(trees.w), "costs": costs, "noisy": [list(each) for each in trees.noisy]}


def _facts(path: Path, machine: Machine, curve: PassCurve, here: bool) -> CurveFacts:
    return {
        "id": f"{_slug(path.stem)}:{_slug(curve.shape)}:{curve.context}",
        "device": plain(machine.device),
        "threads": machine.threads,
        "dtype": plain(machine.dtype),
        "date": plain(machine.date),
        "versions": plain(machine.versions),
        "here": here,
        "model": plain(curve.shape),
        "context": curve.context,
        "rows": list(curve.rows),
        "milliseconds": list(curve.milliseconds),
        "noisy": [each for each in curve.noisy if each in curve.rows],
    }


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text)[:64].strip("-") or "x"
