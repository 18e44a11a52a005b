"""The fastest settings on a CPU, found by measuring: presets of the methods, named after what they were measured on.

A paper's settings suit a GPU, where a pass with a hundred rows costs little more than one with a single row. On a CPU
every row has a cost, so fewer guesses are faster. `python -m decoding tune` measures the candidates.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decoding import embedded
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.types import JSON

from .measured_here import contents_here

if TYPE_CHECKING:
    from decoding.engine import Engine

POCKET = "pocket on a CPU"
CPU = "SmolLM2 on a CPU"  # and every other model that is not tiny
TUNED = (CPU, POCKET)
TUNED_HERE = "tuned"  # the folder of the user's cache

TunedHere = dict[str, dict[str, dict[str, JSON]]]  # settings by method and the model's last name


def tuned_preset(method: str, model: str, device: str) -> str | None:
    """Return the fastest preset of a method for this model on this device; None if the defaults are the fastest."""
    name = POCKET if model in (embedded.TARGET, embedded.DRAFTER, embedded.MEDUSA_2) else CPU
    presets = METHODS[method].Params.presets
    return name if device == "cpu" and name in presets else None


def tuned_params(engine: Engine, methods: Sequence[str]) -> dict[str, dict[str, JSON]]:
    """Return the settings of these presets, by method."""
    model, device = engine.model.card.name, engine.model.device.type
    settings = dict[str, dict[str, JSON]]()
    for method in methods:
        if method in METHODS and (preset := tuned_preset(method, model, device)):
            settings[method] = dict(METHODS[method].Params.presets[preset])
    return settings


def tuned_here() -> TunedHere:
    """Return the settings that `tune` or the page's button found on this machine, where they speculate."""
    found: TunedHere = {}
    for content in contents_here(TUNED_HERE):
        for method in METHODS:
            with contextlib.suppress(KeyError, TypeError, ParamError):  # not tuned, or by another version
                if content[method]["speculate"] is True:
                    settings = METHODS[method].Params.parse(content[method]["params"]).to_json()
                    model = Path(content["model"]).name
                    found.setdefault(method, {})[model] = settings
    return found
