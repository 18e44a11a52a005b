"""The default model: the best one that is ready on this machine."""

from __future__ import annotations

from . import smollm2
from .embedded import PARTS, TARGET

BEST = "best"  # its name, wherever a model is named


def best_model() -> str:
    """Return "smollm2" if its weights and its parts are on this machine, else "pocket"."""
    ready = any(path.exists() for path in PARTS[smollm2.NAME].values()) and smollm2.here() is not None
    return smollm2.NAME if ready else TARGET


def named_model(name: str) -> str:
    """Replace "best" by the name of that model."""
    return best_model() if name == BEST else name
