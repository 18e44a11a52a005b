"""What a step costs on a device: c(T) as it was measured there, and drafting in the proportion that a record has."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from decoding.errors import ParamError
from decoding.packed import ASSETS
from decoding.trace.json_line import show

from ..metrics.columns import Array

COSTS = ASSETS / "costs"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
_LARGEST_FILE = 2**22
_LARGEST = 1e9  # rows, or milliseconds


@dataclass(frozen=True, slots=True)
class PassCosts:
    """What a pass of one model over several rows costs on a device, after a text of one length."""

    device: str
    shape: str  # the model
    context: int
    rows: tuple[float, ...]
    times: tuple[float, ...]  # milliseconds

    def milliseconds(self, rows: Array) -> Array:
        """Return the times of passes: interpolated, and beyond the measured rows as between the last two."""
        times = np.interp(rows, self.rows, self.times)
        slope = max(0.0, (self.times[-1] - self.times[-2]) / (self.rows[-1] - self.rows[-2]))
        return np.asarray(times + slope * np.maximum(0.0, rows - self.rows[-1]))


def devices() -> list[str]:
    """List the devices that were measured."""
    return sorted(path.stem for path in COSTS.glob("*.json"))


def read_costs(named: str, context: float) -> PassCosts:
    """Read DEVICE or DEVICE:MODEL of the measured ones, or of a file of `cost --out`; of the nearest text length."""
    device, _, shape = named.partition(":") if not named.endswith(".json") else (named, "", "")
    path = COSTS / f"{device}.json" if _NAME.fullmatch(device) else Path(device)
    if not _is_small_file(path):
        raise ParamError(
            f"there are no costs of {show(device)}: name {', '.join(devices())}, or a file of `cost --out`"
        )
    try:
        costs = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        costs = None
    entries = [entry for each in _list(costs, "shapes") if (entry := _entry(costs, each)) is not None]
    if not entries:
        raise ParamError(f"{show(device)} holds no costs: name a file that `cost --out` has written")
    shapes = list(dict.fromkeys(entry.shape for entry in entries))
    if shape and shape not in shapes or not shape and len(shapes) > 1:
        raise ParamError(f"{show(device)} has the costs of {', '.join(map(show, shapes))}: name one, as DEVICE:MODEL")
    chosen = [entry for entry in entries if entry.shape == (shape or shapes[0])]
    return min(chosen, key=lambda entry: abs(entry.context - context))


def _is_small_file(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size <= _LARGEST_FILE
    except (OSError, ValueError):  # a name that no file can have
        return False


def _list(costs: Any, name: str) -> list[Any]:
    entries = costs.get(name) if isinstance(costs, dict) else None
    return entries if isinstance(entries, list) else []


def _entry(costs: dict[str, Any], entry: Any) -> PassCosts | None:
    """Return an entry of a file that may hold anything; None where it is not one."""
    if not isinstance(entry, dict):
        return None
    rows, times = _numbers(entry.get("rows")), _numbers(entry.get("milliseconds"))
    device, shape, context = costs.get("device"), entry.get("shape"), _numbers([entry.get("context")])
    if not (rows and times and len(rows) == len(times) > 1 and isinstance(device, str) and isinstance(shape, str)):
        return None
    if not context or rows[0] != 1 or any(a >= b for a, b in zip(rows, rows[1:], strict=False)):
        return None
    return PassCosts(device, shape, int(context[0]), tuple(rows), tuple(times))


def _numbers(values: Any) -> list[float]:
    """Return positive numbers; nothing where some value is none."""
    listed = values if isinstance(values, list) else []
    fine = all(type(each) in (int, float) and math.isfinite(each) and 0 < each <= _LARGEST for each in listed)
    return [float(each) for each in listed] if fine else []
