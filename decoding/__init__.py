"""Specscope's engine: token ids in, steps out.

from decoding import load
engine = load("toy")
for step in engine.decode("Once upon", method="lookahead"): ...
"""

from .engine import Engine, Result
from .errors import ModelError, ParamError, SpecscopeError, TraceError
from .load import load
from .methods import METHODS

__all__ = ["METHODS", "Engine", "ModelError", "ParamError", "Result", "SpecscopeError", "TraceError", "load"]
