"""Reads the cost of passes on measured machines: assets/costs/, and what `python -m decoding cost` saved here.

Files are untrusted: an incomplete curve is left out, and a sentence says why.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from decoding.errors import TraceError
from decoding.packed import ASSETS
from decoding.trace.schema import from_json

SHIPPED = ASSETS / "costs"
_MOST_BYTES = 2**20
_MOST_ROWS, _MOST_TOKENS, _MOST_MS = 64, 2**20, 1e7


@dataclass(frozen=True, slots=True)
class Machine:
    """Where, when and how all curves of a file were measured."""

    device: str
    date: str
    dtype: str
    versions: str
    threads: int | None


@dataclass(frozen=True, slots=True)
class PassCurve:
    """Times of a model's passes after a text of one length, by the tokens that a pass reads."""

    shape: str  # the model
    context: int
    rows: tuple[int, ...]
    milliseconds: tuple[float, ...]
    noisy: tuple[int, ...]  # rows whose time was disturbed

    def times(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the times of passes, interpolated; NaN beyond the rows that were measured."""
        return np.asarray(np.interp(rows, self.rows, self.milliseconds, right=np.nan))


def read_curves(path: Path, leave_out: Callable[[str], None]) -> Iterator[tuple[Machine, PassCurve]]:
    """Yield the curves of a file; `leave_out` is called with a sentence on each incomplete one."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MOST_BYTES + 1))
        machine = _fields(Machine, content, path.name)
        shapes = content.get("shapes")
        if not isinstance(shapes, list):
            raise TraceError(f"{path.name} has no list of shapes")
        if (machine.threads or 1) < 1:
            raise TraceError(f"{path.name} has threads that cannot be")
    except (OSError, ValueError, RecursionError, TraceError) as error:
        leave_out(f"{path.name} is left out: {error}")
        return
    for number, row in enumerate(shapes, start=1):
        try:
            yield machine, _checked(_fields(PassCurve, row, f"{path.name}: shape {number}"), path)
        except TraceError as error:
            leave_out(f"a curve is left out: {error}")


def plain(text: str) -> str:
    """Return what can be read of a text on one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:80]


def _fields(cls: type[Any], content: Any, where: str) -> Any:
    """Read the fields that a class has: files say more of a measurement."""
    if not isinstance(content, dict):
        raise TraceError(f"{where} is no object")
    whole: dict[str, Any] = {"threads": None, "noisy": []} | content
    return from_json(cls, {name: whole[name] for name in cls.__dataclass_fields__ if name in whole}, where)


def _checked(curve: PassCurve, path: Path) -> PassCurve:
    rows, times, named = curve.rows, curve.milliseconds, f"{path.name}: {plain(curve.shape)}"
    if not (2 <= len(rows) == len(times) <= _MOST_ROWS and rows[0] == 1 and rows[-1] <= _MOST_TOKENS):
        raise TraceError(f"{named} has no times of passes over one token and more")
    if any(low >= high for low, high in pairwise(rows)) or not all(0 < each < _MOST_MS for each in times):
        raise TraceError(f"{named} has rows that do not grow, or times that are none")
    if not 0 <= curve.context <= _MOST_TOKENS or not all(map(math.isfinite, times)):
        raise TraceError(f"{named} has a context that cannot be")
    return curve
