"""Specscope's engine: token ids in, steps out. This module has all that a script, a notebook or a new method needs.

from decoding import load
engine = load()  # SmolLM2 if it is installed, else pocket
for step in engine.decode("Once upon", method="lookahead"): ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import moved
from .errors import ModelError, OptionError, ParamError, RankError, SpecscopeError, TraceError

if TYPE_CHECKING:
    from .chat import Chat
    from .engine import Engine, Result
    from .loader import load
    from .methods import METHODS, Context, Method
    from .params import Params, param
    from .ranks import Ranks
    from .request import DecodeOptions
    from .run import Run
    from .sampling import Sampling
    from .trace import read_trace, write_trace
    from .trace.rescore import Rescore
    from .tree import Builder
    from .types import Draft, Role, Step, Summary, Trace, Verdict

__version__ = "0.6.0"

__all__ = [
    "METHODS",
    "Builder",
    "Chat",
    "Context",
    "DecodeOptions",
    "Draft",
    "Engine",
    "Method",
    "ModelError",
    "OptionError",
    "ParamError",
    "Params",
    "RankError",
    "Ranks",
    "Rescore",
    "Result",
    "Role",
    "Run",
    "Sampling",
    "SpecscopeError",
    "Step",
    "Summary",
    "Trace",
    "TraceError",
    "Verdict",
    "load",
    "param",
    "read_trace",
    "write_trace",
]

# Imported when asked for: most of it imports torch, which replaying records does not need.
_LATER = {
    ".chat": ("Chat",),
    ".engine": ("Engine", "Result"),
    ".loader": ("load",),
    ".methods": ("METHODS", "Context", "Method"),
    ".params": ("Params", "param"),
    ".ranks": ("Ranks",),
    ".request": ("DecodeOptions",),
    ".run": ("Run",),
    ".sampling": ("Sampling",),
    ".trace": ("read_trace", "write_trace"),
    ".trace.rescore": ("Rescore",),
    ".tree": ("Builder",),
    ".types": ("Draft", "Role", "Step", "Summary", "Trace", "Verdict"),
}
moved.follow()
_MODULES = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
