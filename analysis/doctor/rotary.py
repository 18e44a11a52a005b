"""Lists other settings of a drafter's rotary embedding to try: another base, another scaling or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from decoding.errors import ModelError
from decoding.model.rope import Rope
from decoding.types import JSON

BASE = 1e4  # of a rotary embedding where none is given


class RotaryChange(NamedTuple):
    """Other settings, and how a probe of them is named."""

    name: str
    flag: str
    given: JSON
    other: JSON
    remedy: str
    parameters: Mapping[str, Any]  # as transformers names them


def rotary_changes(rope: Rope, target: Rope | None) -> list[RotaryChange]:
    """List other settings than those of `rope`: those of the target, and the usual ones."""
    given, changes, theirs = rope.parameters, list[RotaryChange](), BASE if target is None else target.base
    for base in sorted({theirs, BASE} - {rope.base}):
        whose = "the target's" if base == theirs and target else "the usual"
        remedy = f"set rope_theta to {base:g} in its config.json"
        name, rotated = f"rotary base {base:g}, {whose}", {**given, "rope_theta": base}
        changes.append(RotaryChange(name, "rope_theta", rope.base, base, remedy, rotated))
    kind = str(given.get("rope_type", "default"))
    scalings: dict[str, Mapping[str, Any]] = {"default": {"rope_type": "default", "rope_theta": rope.base}}
    if target is not None:
        scalings.setdefault(str(target.parameters.get("rope_type", "default")), target.parameters)
    for other, parameters in scalings.items():
        if other != kind and _fits(rope, parameters):
            remedy = f"set rope_type to {other} in its config.json"
            changes.append(RotaryChange(f"rotary scaling {other}", "rope_scaling", kind, other, remedy, parameters))
    return changes


def _fits(rope: Rope, parameters: Mapping[str, Any]) -> bool:
    """Return whether a drafter's sizes allow these settings."""
    try:
        rope.with_parameters(parameters)
    except ModelError:
        return False
    return True
