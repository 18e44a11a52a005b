"""The named settings in a method's menu: its own presets, those that ship, and those found on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysis.tuned import TUNED, TunedHere, tuned_preset
from decoding.errors import ParamError
from decoding.methods import METHODS, Method
from decoding.params import shown
from decoding.types import JSON

from .models.entry import CatalogEntry
from .server.machine import device_of

DEFAULTS = "defaults"  # the name of the settings that are a method's own
TUNED_HERE = "tuned here"  # ends the name of what was found on this machine
_tuned_here: TunedHere = {}  # when the server started


def offer(tuned: TunedHere) -> None:
    """Offer settings that were found on this machine, until the process ends."""
    for method, models in tuned.items():
        _tuned_here[method] = {**_tuned_here.get(method, {}), **models}


def presets(kind: type[Method]) -> dict[str, dict[str, JSON]]:
    """Return the settings of a method by the name of the preset, the defaults first."""
    plain = kind.Params().to_json()
    ships = {name: kind.Params.parse(dict(values)).to_json() for name, values in kind.Params.presets.items()}
    listed = {DEFAULTS: plain} | ships
    models = _tuned_here.get(kind.name, {}).items()
    return listed | {_name(model): each for model, each in models if each not in listed.values()}


def best_preset(method: str, entry: CatalogEntry) -> str:
    """Return the preset that is fastest for this model on its kind of device, as measured; else the defaults."""
    model, device = Path(entry.model).name, device_of(entry.device)
    if device == "cpu" and (settings := _tuned_here.get(method, {}).get(model)):
        here = _name(model)
        return here if here in presets(METHODS[method]) else preset_name(METHODS[method], settings)
    return tuned_preset(method, entry.model, device) or DEFAULTS


def is_for_a_model(method: str, name: object) -> bool:
    """Return True for a preset that is replaced when another model is chosen."""
    return name in (*TUNED, DEFAULTS, *map(_name, _tuned_here.get(method, {})))


def preset_name(kind: type[Method], values: Mapping[str, object]) -> str:
    """Return the name of the preset that has these settings, or an empty string."""
    return next((name for name, settings in presets(kind).items() if settings == values), "")


def preset(kind: type[Method], name: object) -> dict[str, JSON]:
    """Return the settings of a preset."""
    settings = presets(kind)
    if not isinstance(name, str) or name not in settings:
        raise ParamError(f"{kind.label} has no preset {shown(name)}; choose one of {', '.join(settings)}")
    return settings[name]


def _name(model: str) -> str:
    return f"{model}, {TUNED_HERE}"
