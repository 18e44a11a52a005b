"""Reads a method's panel as the method's own TypedDict.

The record may come from a file that anyone wrote: an entry whose value does not fit its type is ignored, and no list is
read beyond a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache, lru_cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from decoding.types import JSON, Step

from .identity import Held

_RECENT = 64  # panels that are remembered: every view reads the same one
_LARGEST = 2**31  # of token ids, places and counts: larger ones do not fit into a patch
_LONGEST_LIST = 512  # entries that are read
_LONGEST_TEXT = 64  # characters of a text that fits
_MOST = 2**16  # values that are read of a panel

PanelType = TypeVar("PanelType", bound=Mapping[str, Any])


class _UnfitError(Exception):
    """A value that does not fit its type."""


class _Budget:
    """How many more values of a panel are read."""

    def __init__(self) -> None:
        self._left = _MOST

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _UnfitError


_Reader = Callable[[JSON, _Budget], Any]


def read_panel(kind: type[PanelType], panel: Mapping[str, JSON]) -> PanelType:
    """Return the entries of a step's panel that fit the method's type of it."""
    read: PanelType = _read(cast(Hashable, kind), Held(panel))
    return read


def panel_reader(kind: type[PanelType]) -> Callable[[Step], PanelType]:
    """Return a function that reads the panel of a step."""
    return lambda step: read_panel(kind, step.panel)


@lru_cache(maxsize=_RECENT)
def _read(kind: Any, panel: Held) -> Any:
    return _entries(kind, panel.value, _Budget())


def _entries(kind: Any, given: Mapping[str, JSON], budget: _Budget) -> dict[str, Any]:
    """Return the entries of an object that fit; an entry that the type requires must exist and fit."""
    read: dict[str, Any] = {}
    for name, reader in _readers(kind).items():
        if name not in given and name not in kind.__required_keys__:
            continue
        try:
            if name not in given:
                raise _UnfitError
            read[name] = reader(given[name], budget)
        except _UnfitError:
            if name in kind.__required_keys__:
                raise
    return read


@cache
def _readers(kind: Any) -> dict[str, _Reader]:
    return {name: _reader(hint) for name, hint in get_type_hints(kind).items()}


@cache
def _reader(hint: Any) -> _Reader:
    """Return a reader of a type hint's values, which raises _UnfitError for any other value."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:
        return _one_of(args)
    if origin is list:
        return _whole_numbers if args[0] is int else _list_of(_reader(args[0]))
    if origin is tuple and ... not in args:
        return _tuple_of([_reader(arg) for arg in args])
    if origin in (Union, UnionType) and len(args) == 2 and type(None) in args:
        return _optional(_reader(next(arg for arg in args if arg is not type(None))))
    if is_typeddict(hint):
        return _object_of(hint)
    raise TypeError(f"a panel cannot hold {hint!r}: use numbers, texts, literals, lists, tuples and TypedDicts")


def _whole(value: JSON, budget: _Budget) -> int:
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise _UnfitError
    return value


def _number(value: JSON, budget: _Budget) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not -_LARGEST < value < _LARGEST:
        raise _UnfitError
    return value


def _flag(value: JSON, budget: _Budget) -> bool:
    if type(value) is not bool:
        raise _UnfitError
    return value


def _text(value: JSON, budget: _Budget) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise _UnfitError
    return value


_PLAIN: dict[Any, _Reader] = {int: _whole, float: _number, bool: _flag, str: _text}


def _one_of(choices: tuple[Any, ...]) -> _Reader:
    def read(value: JSON, budget: _Budget) -> Any:
        if not isinstance(value, str | int) or value not in choices:
            raise _UnfitError
        return value

    return read


def _optional(reader: _Reader) -> _Reader:
    return lambda value, budget: None if value is None else reader(value, budget)


def _items(value: JSON, budget: _Budget) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise _UnfitError
    items = [*value[:_LONGEST_LIST]]
    budget.spend(1 + len(items))
    return items


def _whole_numbers(value: JSON, budget: _Budget) -> list[int]:
    """Return a list of token ids, places or counts: by far the most that panels hold, so read at once."""
    items = _items(value, budget)
    if items and (set(map(type, items)) != {int} or min(items) < 0 or max(items) >= _LARGEST):
        raise _UnfitError
    return items


def _list_of(reader: _Reader) -> _Reader:
    return lambda value, budget: [reader(item, budget) for item in _items(value, budget)]


def _tuple_of(readers: list[_Reader]) -> _Reader:
    def read(value: JSON, budget: _Budget) -> tuple[Any, ...]:
        items = _items(value, budget)
        if len(items) != len(readers):
            raise _UnfitError
        return tuple(reader(item, budget) for reader, item in zip(readers, items, strict=True))

    return read


def _object_of(kind: Any) -> _Reader:
    def read(value: JSON, budget: _Budget) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _UnfitError
        budget.spend(1)
        return _entries(kind, value, budget)

    return read
