"""Converts frozen dataclasses to JSON and back by their type hints; values that are read are checked.

`from_json` reads exactly what `to_json` writes, and raises a TraceError that names the field for anything else.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import IntEnum
from functools import cache, partial
from itertools import chain, islice
from typing import Any, TypeVar

from ..errors import TraceError
from ..types import JSON
from .json_line import show

DEPTH = 32  # nested lists and objects inside one plain JSON value: far above any panel, far below any stack limit
_EDGE = 2**63  # readers in other languages store whole numbers in 64 bits
# A character given as two surrogates: JSON turns it into the one character, which is not equal.
_SPLIT = re.compile("[\ud800-\udbff][\udc00-\udfff]")

T = TypeVar("T")
Convert = Callable[[Any], Any]


class _MisfitError(Exception):
    """A value that does not fit, and the path to it, which callers extend on the way up."""

    def __init__(self, what: str, path: str = "") -> None:
        super().__init__(what)
        self.what, self.path = what, path

    def inside(self, step: str) -> _MisfitError:
        self.path = step + self.path
        return self


class _Form(typing.NamedTuple):
    """The functions that read and write values of one type hint."""

    read: Convert
    write: Convert
    # Reads a whole column at once, at the speed of built-in functions; None if a value needs `read`.
    column: Callable[[list[Any]], list[Any] | None] = lambda values: None


def to_json(obj: object) -> JSON:
    """Return the plain JSON of a dataclass, with all its fields."""
    try:
        return _form(typing.cast(Hashable, type(obj))).write(obj)
    except _MisfitError as misfit:
        raise TraceError(f"{type(obj).__name__}{misfit.path} {misfit.what}") from None


def from_json(cls: type[T], data: JSON, where: str) -> T:
    """Build what `data` describes; `where` begins the sentence of an error, as in "line 3: step"."""
    try:
        made: T = _form(typing.cast(Hashable, cls)).read(data)
    except _MisfitError as misfit:
        raise TraceError(f"{where}{misfit.path} {misfit.what}") from None
    return made


@cache
def _form(hint: Hashable) -> _Form:
    """Return the form of a type hint, cached: looking hints up costs more than reading a step."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin is tuple:
        return _row(_form(args[0])) if args[1:] == (...,) else _fixed([_form(arg) for arg in args])
    if origin is Mapping:
        return _mapping(args[0], _form(args[1]))
    if origin in (types.UnionType, typing.Union) and len(args) == 2 and args[1] is type(None):
        return _optional(_form(args[0]))
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return _enum(hint)
    assert dataclasses.is_dataclass(hint) and isinstance(hint, type), f"no JSON form for {hint!r}"
    return _object(hint)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise _MisfitError(f"must be a whole number, not {show(value)}")
    if not -_EDGE <= value < _EDGE:
        raise _MisfitError("must be a whole number of at most 64 bits")
    return value


def _number(value: Any) -> float:
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if type(value) is int:
        return float(_whole(value))
    raise _MisfitError(f"must be a finite number, not {show(value)}")


def _exactly(kind: type, words: str, value: Any) -> Any:
    if type(value) is not kind:
        raise _MisfitError(f"must be {words}, not {show(value)}")
    return value


_flag, _listed = partial(_exactly, bool, "true or false"), partial(_exactly, list, "a list")
_keyed = partial(_exactly, dict, "an object")


def _text(value: Any) -> str:
    text: str = _exactly(str, "a text", value)
    if not text.isascii() and _SPLIT.search(text):
        raise _MisfitError("holds a character split into two surrogates: join them")
    return text


def _plain(value: Any, depth: int = DEPTH) -> JSON:
    """Return plain JSON unchanged; refuse tuples and keys that are not texts, which would not be read back equal."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind in (int, float, str):
        return _SCALARS[kind].read(value)
    if kind not in (list, dict):
        raise _MisfitError(f"must be plain JSON, not a Python {kind.__name__}")
    if depth == 0:
        raise _MisfitError(f"nests lists or objects deeper than {DEPTH} levels")

    def below(item: Any) -> JSON:
        return _plain(item, depth - 1)

    return _each(below, value) if kind is list else _entries(below, value)


def _only(kind: type, values: list[Any]) -> bool:
    return set(map(type, values)) <= {kind}


def _wholes(values: list[Any]) -> list[Any] | None:
    fine = not values or (_only(int, values) and min(values) >= -_EDGE and max(values) < _EDGE)
    return values if fine else None


def _numbers(values: list[Any]) -> list[Any] | None:
    return values if _only(float, values) and all(map(math.isfinite, values)) else None


def _texts(values: list[Any]) -> list[Any] | None:
    return values if _only(str, values) and all(map(str.isascii, values)) else None


_SCALARS: dict[Any, _Form] = {
    int: _Form(_whole, _whole, _wholes),
    float: _Form(_number, _number, _numbers),
    bool: _Form(_flag, _flag),
    str: _Form(_text, _text, _texts),
    Any: _Form(_plain, _plain),
}


def _each(convert: Convert, items: Iterable[Any]) -> list[Any]:
    done: list[Any] = []
    try:
        for item in items:
            done.append(convert(item))  # in a loop, so that the count names the item that failed
    except _MisfitError as misfit:
        raise misfit.inside(f"[{len(done)}]") from None
    return done


def _entries(convert: Convert, entries: Mapping[Any, Any]) -> dict[str, Any]:
    done: dict[str, Any] = {}
    for key, value in entries.items():
        try:
            done[_text(key)] = convert(value)
        except _MisfitError as misfit:
            raise misfit.inside(f"[{show(key)}]") from None
    return done


def _row(item: _Form) -> _Form:
    def read(value: Any) -> tuple[Any, ...]:
        done = item.column(_listed(value))
        return tuple(_each(item.read, value) if done is None else done)

    def column(rows: list[Any]) -> list[Any] | None:
        done = item.column(list(chain.from_iterable(rows))) if _only(list, rows) else None
        if done is None:
            return None
        values = iter(done)
        return [tuple(islice(values, len(row))) for row in rows]

    return _Form(read, lambda value: _each(item.write, value), column)


def _fixed(items: list[_Form]) -> _Form:
    def read(value: Any) -> tuple[Any, ...]:
        if len(_listed(value)) != len(items):
            raise _MisfitError(f"must be a list of {len(items)} values, not of {len(value)}")
        return tuple(_each(lambda pair: pair[0].read(pair[1]), zip(items, value, strict=True)))

    def write(value: Any) -> list[Any]:
        return _each(lambda pair: pair[0].write(pair[1]), zip(items, value, strict=True))

    def column(rows: list[Any]) -> list[Any] | None:
        if not _only(list, rows) or set(map(len, rows)) != {len(items)}:
            return None
        parts = [item.column(list(part)) for item, part in zip(items, zip(*rows, strict=True), strict=True)]
        done = [part for part in parts if part is not None]
        return list(zip(*done, strict=True)) if len(done) == len(parts) else None

    return _Form(read, write, column)


def _mapping(key: Any, item: _Form) -> _Form:
    def read(value: Any) -> dict[Any, Any]:
        entries = _entries(item.read, _keyed(value))
        return {_numeral(name): entry for name, entry in entries.items()} if key is int else entries

    def write(value: Mapping[Any, Any]) -> dict[str, Any]:
        return _entries(item.write, {str(_whole(k)): v for k, v in value.items()} if key is int else value)

    return _Form(read, write)


def _numeral(key: str) -> int:
    """Read a key as a number, in its only spelling allowed, so that no two keys are equal."""
    if not re.fullmatch("0|-?[1-9][0-9]{0,18}", key):
        raise _MisfitError(f"must have whole numbers as keys, not {show(key)}")
    return _whole(int(key))


def _optional(item: _Form) -> _Form:
    def column(values: list[Any]) -> list[Any] | None:
        given = [value for value in values if value is not None]
        done = item.column(given)
        return values if done is given else None

    return _Form(
        lambda value: None if value is None else item.read(value),
        lambda value: None if value is None else item.write(value),
        column,
    )


def _enum(kind: type[IntEnum]) -> _Form:
    members = {int(member): member for member in kind}

    def read(value: Any) -> IntEnum:
        if type(value) is not int or value not in members:
            raise _MisfitError(f"must be one of {', '.join(map(str, members))}, not {show(value)}")
        return members[value]

    def column(values: list[Any]) -> list[Any] | None:
        fine = _only(int, values) and members.keys() >= set(values)
        return [members[value] for value in values] if fine else None

    return _Form(read, int, column)


def _object(kind: type) -> _Form:
    hints = typing.get_type_hints(kind)
    forms = {field.name: _form(hints[field.name]) for field in dataclasses.fields(kind)}
    later = {field.name for field in dataclasses.fields(kind) if field.metadata.get("later")}

    def convert(name: str, call: Convert, value: Any) -> Any:
        try:
            return call(value)
        except _MisfitError as misfit:
            raise misfit.inside(f".{name}") from None

    def read(value: Any) -> Any:
        data = _keyed(value)
        for name in data:
            if name not in forms:
                raise _MisfitError(f"has the unknown key {show(name)}")
        for name in forms:
            if name not in data and name not in later:
                raise _MisfitError("is missing", f".{name}")
        return kind(**{name: convert(name, form.read, data[name]) for name, form in forms.items() if name in data})

    def write(value: Any) -> dict[str, Any]:
        return {name: convert(name, form.write, getattr(value, name)) for name, form in forms.items()}

    return _Form(read, write)
