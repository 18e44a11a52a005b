"""Settings described once: a frozen dataclass whose fields carry range, label, help and paper symbol.

Validation, command-line flags, the output of `methods --json` and the page's controls all read these fields.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self, get_type_hints

from .errors import ParamError
from .types import JSON

_KINDS: dict[type, dict[str, type]] = {}


def param(
    default: float | str,
    *,
    label: str,
    help: str,
    symbol: str = "",
    min: float | None = None,
    max: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare a field of a Params class; bounds are inclusive."""
    meta = {"label": label, "help": help, "symbol": symbol, "min": min, "max": max, "choices": choices}
    return dataclasses.field(default=default, metadata=meta)


def share(default: float, *, label: str, help: str, symbol: str = "") -> Any:
    """Declare a field for a number from 0 to 1."""
    return param(default, label=label, help=help, symbol=symbol, min=0.0, max=1.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Params:
    """Base of every settings class. Construction validates; `parse` accepts hostile JSON or strings."""

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {}

    def __post_init__(self) -> None:
        kinds = _kinds(type(self))
        for field in dataclasses.fields(self):
            _check(field, kinds[field.name], getattr(self, field.name))
        self.check()

    @property
    def nodes(self) -> int:
        """Return the nodes of the largest step with these settings; 0 for a method that fits itself into any step."""
        return 0

    @property
    def rows(self) -> int:
        """Return the most guesses that a drafter reads as a tree in a step; 0 without such a drafter."""
        return 0

    @property
    def ranked(self) -> int:
        """Return how many of the target's likeliest tokens per node the method needs; 0 if one is enough."""
        return 0

    @property
    def typical(self) -> tuple[float, float] | None:
        """Return epsilon and delta of typical acceptance, which is not lossless; None for the lossless rules."""
        return None

    def check(self) -> None:
        """Raise ParamError if fields that are valid alone contradict each other."""

    @classmethod
    def parse(cls, raw: object) -> Self:
        """Build from untrusted values: JSON values of the right type, or strings as a command line gives them."""
        if not isinstance(raw, Mapping):
            raise ParamError("parameters must be an object of names and values")
        kinds = _kinds(cls)
        names = [field.name for field in dataclasses.fields(cls)]
        values: dict[str, Any] = {}
        for name, value in raw.items():
            if name not in names:
                raise ParamError(f"unknown parameter {shown(name)}; known ones: {', '.join(names) or 'none'}")
            values[name] = _convert(name, kinds[name], value)
        return cls(**values)

    def to_json(self) -> dict[str, JSON]:
        """Return the values by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def in_words(self) -> list[str]:
        """List the values that have a symbol in the paper or differ from their defaults, each as "W=15"."""
        return [
            f"{row['name']}={getattr(self, row['name'])}"
            for row in self.describe()
            if len(row["name"]) == 1 or row["symbol"] != row["name"] or getattr(self, row["name"]) != row["default"]
        ]

    @classmethod
    def describe(cls) -> list[dict[str, JSON]]:
        """Describe every field: name, symbol, label, type, default, bounds, choices and help."""
        kinds = _kinds(cls)
        return [
            {
                "name": field.name,
                "symbol": field.metadata["symbol"] or field.name,
                "label": field.metadata["label"],
                "type": kinds[field.name].__name__,
                "default": field.default,
                "min": field.metadata["min"],
                "max": field.metadata["max"],
                "choices": list(field.metadata["choices"]),
                "help": field.metadata["help"],
            }
            for field in dataclasses.fields(cls)
        ]


def _kinds(cls: type) -> dict[str, type]:
    """Return the fields' types, cached: resolving them is slow, and every run asks several times."""
    if cls not in _KINDS:
        _KINDS[cls] = get_type_hints(cls)
    return _KINDS[cls]


def _check(field: dataclasses.Field[Any], kind: type, value: object) -> None:
    """Raise ParamError unless `value` has exactly the field's type and is within its bounds."""
    name, low, high = field.name, field.metadata["min"], field.metadata["max"]
    choices = field.metadata["choices"]
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise ParamError(f"{name} must be {_article(kind)}, not {shown(value)}")
    if choices and value not in choices:
        raise ParamError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            raise ParamError(f"{name} must be a finite number, not {value}")
        if (low is not None and value < low) or (high is not None and value > high):
            raise ParamError(f"{name} must be {_bounds(low, high)}, not {shown(value)}")


def _convert(name: str, kind: type, value: object) -> object:
    """Convert a string from a command line, or a whole number for a float, to `kind`; leave the rest to `_check`."""
    if kind is str or not (isinstance(value, str) or (kind is float and type(value) is int)):
        return value
    try:
        if kind is bool and isinstance(value, str):
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[value.lower()]
        return kind(value)
    except (KeyError, ValueError, OverflowError):
        raise ParamError(f"{name} must be {_article(kind)}, not {shown(value)}") from None


def check_count(name: str, value: object, low: int, high: int) -> int:
    """Return a value if it is a whole number within the bounds; else raise ParamError."""
    if type(value) is not int or not low <= value <= high:
        raise ParamError(f"{name} must be a whole number from {low} to {high}, not {shown(value)}")
    return value


def shown(value: object) -> str:
    """Return the beginning of a value for a message. Python refuses to format integers of thousands of digits."""
    if value is None:
        return "nothing"
    try:
        return repr(value)[:40] if isinstance(value, int | float) else repr(str(value)[:40])
    except ValueError:
        return "that"


def _article(kind: type) -> str:
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}[kind]


def _bounds(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"between {low} and {high}"
    return f"at least {low}" if low is not None else f"at most {high}"
