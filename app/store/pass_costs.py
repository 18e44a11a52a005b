"""What passes cost on measured machines: the files of assets/costs/, and what `python -m decoding cost` saved here.

Files may come from anybody: a curve that is not whole is left out and logged.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from decoding.errors import TraceError
from decoding.packed import ASSETS
from decoding.trace.schema import from_json
from decoding.user_cache import user_cache

SHIPPED = ASSETS / "costs"
_MOST_FILES, _MOST_BYTES = 32, 2**20
_MOST_ROWS, _MOST_TOKENS, _MOST_MS = 64, 2**20, 1e7
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Machine:
    """The facts of a file that hold for all its curves."""

    device: str
    date: str
    dtype: str
    versions: str
    threads: int | None


@dataclass(frozen=True, slots=True)
class _Shape:
    """What passes of a model took, by the tokens that they read."""

    shape: str
    context: int
    rows: tuple[int, ...]
    milliseconds: tuple[float, ...]
    noisy: tuple[int, ...]


PassCurve = dict[str, Any]  # as the page gets it


def pass_costs() -> list[PassCurve]:
    """Return every curve: first those that were measured here."""
    home = user_cache()
    here = [] if home is None else _files(home / "costs")
    return [*(curve for path in here for curve in _curves(path, here=True)), *shipped_costs()]


def shipped_costs(folder: Path = SHIPPED) -> list[PassCurve]:
    """Return the curves of named machines."""
    return [curve for path in _files(folder) for curve in _curves(path, here=False)]


def _files(folder: Path) -> Sequence[Path]:
    try:
        return sorted(folder.glob("*.json"))[:_MOST_FILES]
    except OSError:
        return []


def _curves(path: Path, here: bool) -> Iterator[PassCurve]:
    """Yield the curves of a file."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MOST_BYTES + 1))
        machine = _fields(_Machine, content, path.name)
        shapes = content.get("shapes")
        if not isinstance(shapes, list):
            raise TraceError(f"{path.name} has no list of shapes")
    except (OSError, ValueError, RecursionError, TraceError) as error:
        _log.warning("%s is left out: %s", path.name, error)
        return
    for number, row in enumerate(shapes, start=1):
        try:
            yield _curve(path, machine, _fields(_Shape, row, f"{path.name}: shape {number}"), here)
        except TraceError as error:
            _log.warning("a curve is left out: %s", error)


def _fields(cls: type[Any], content: Any, where: str) -> Any:
    """Read the fields that a class has: files say more of a measurement."""
    if not isinstance(content, dict):
        raise TraceError(f"{where} is no object")
    whole: dict[str, Any] = {"threads": None, "noisy": []} | content
    return from_json(cls, {name: whole[name] for name in cls.__dataclass_fields__ if name in whole}, where)


def _curve(path: Path, machine: _Machine, shape: _Shape, here: bool) -> PassCurve:
    rows, times = shape.rows, shape.milliseconds
    if not (2 <= len(rows) == len(times) <= _MOST_ROWS and rows[0] == 1 and rows[-1] <= _MOST_TOKENS):
        raise TraceError(f"{path.name}: {_plain(shape.shape)} has no times of passes over one token and more")
    if any(low >= high for low, high in pairwise(rows)) or not all(0 < each < _MOST_MS for each in times):
        raise TraceError(f"{path.name}: {_plain(shape.shape)} has rows that do not grow, or times that are none")
    if not 0 <= shape.context <= _MOST_TOKENS or (machine.threads or 1) < 1 or not all(map(math.isfinite, times)):
        raise TraceError(f"{path.name}: {_plain(shape.shape)} has a context or threads that cannot be")
    return {
        "id": f"{_slug(path.stem)}:{_slug(shape.shape)}:{shape.context}",
        "device": _plain(machine.device),
        "threads": machine.threads,
        "dtype": _plain(machine.dtype),
        "date": _plain(machine.date),
        "versions": _plain(machine.versions),
        "here": here,
        "model": _plain(shape.shape),
        "context": shape.context,
        "rows": list(rows),
        "milliseconds": list(times),
        "noisy": [each for each in shape.noisy if each in rows],
    }


def _plain(text: str) -> str:
    """Return what can be read of a text on one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:80]


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text)[:64].strip("-") or "x"
