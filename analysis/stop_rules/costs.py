"""Finds the measured costs that a record is priced with."""

from __future__ import annotations

import re
from pathlib import Path

from decoding.errors import ParamError
from decoding.trace.json_line import show

from ..cost.curves import SHIPPED, Machine, PassCurve, read_curves

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")


def devices() -> list[str]:
    """List the devices that were measured."""
    return sorted(path.stem for path in SHIPPED.glob("*.json"))


def read_costs(named: str, context: float) -> tuple[Machine, PassCurve]:
    """Read the costs of DEVICE or DEVICE:MODEL, measured or from a file of `cost --out`, at the nearest text length."""
    device, _, shape = named.partition(":") if not named.endswith(".json") else (named, "", "")
    path = SHIPPED / f"{device}.json" if _NAME.fullmatch(device) else Path(device)
    if not _is_file(path):
        raise ParamError(
            f"there are no costs of {show(device)}: name {', '.join(devices())}, or a file of `cost --out`"
        )
    faults = list[str]()
    curves = [*read_curves(path, faults.append)]
    if not curves:
        why = faults[0] if faults else "its list is empty"
        raise ParamError(f"{show(device)} holds no costs ({why}): name a file that `cost --out` has written")
    shapes = list(dict.fromkeys(curve.shape for _, curve in curves))
    if shape and shape not in shapes or not shape and len(shapes) > 1:
        raise ParamError(f"{show(device)} has the costs of {', '.join(map(show, shapes))}: name one, as DEVICE:MODEL")
    chosen = [(machine, curve) for machine, curve in curves if curve.shape == (shape or shapes[0])]
    return min(chosen, key=lambda each: abs(each[1].context - context))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False
