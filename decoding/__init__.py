"""Specscope's engine: token ids in, steps out.

from decoding import load
engine = load("pocket")
for step in engine.decode("Once upon", method="lookahead"): ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import ModelError, ParamError, SpecscopeError, TraceError

if TYPE_CHECKING:
    from .chat import Chat
    from .engine import Engine, Result
    from .loader import load
    from .methods import METHODS

__all__ = ["METHODS", "Chat", "Engine", "ModelError", "ParamError", "Result", "SpecscopeError", "TraceError", "load"]

# What brings torch is imported when it is asked for: a screen that replays records does without it.
_LATER = {"Chat": ".chat", "Engine": ".engine", "Result": ".engine", "load": ".loader", "METHODS": ".methods"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name], __name__), name)
