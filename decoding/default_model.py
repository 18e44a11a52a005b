"""The model to begin with where none is named: the best one that is ready on this machine."""

from __future__ import annotations

from . import smollm2
from .embedded import TARGET

BEST = "best"  # stands for it, wherever a model is named


def best_model() -> str:
    """Return "smollm2" where its weights are on this machine, else "pocket"."""
    return TARGET if smollm2.here() is None else smollm2.NAME


def named_model(name: str) -> str:
    """Replace "best" by the name of that model."""
    return best_model() if name == BEST else name
