"""Finds the tokens in a method's panel: the fields that its type declares as `Token`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from .types import JSON, Token

_Finder = Callable[[Any], Iterable[int]]


def tokens_in(kind: type, panel: Mapping[str, JSON]) -> set[int]:
    """Collect the tokens in a panel of that type."""
    finder = _finder(kind)
    return set() if finder is None else {*finder(panel)}


@cache
def _finder(hint: Any) -> _Finder | None:
    """Make a function that finds the tokens in values of a type; None for a type without tokens."""
    if hint == Token:
        return lambda value: (value,)
    if is_typeddict(hint):
        hints = get_type_hints(hint, include_extras=True)
        fields = {name: finder for name, each in hints.items() if (finder := _finder(each))}
        return _in_object(fields) if fields else None
    origin, finders = get_origin(hint), [_finder(each) for each in get_args(hint)]
    inner = next(filter(None, finders), None)
    if inner is None:
        return None
    if origin is list:
        return lambda value: (token for item in value for token in inner(item))
    if origin is tuple:
        return _in_tuple(finders)
    assert origin in (Union, UnionType), f"tokens cannot be declared in {hint!r}"
    return lambda value: () if value is None else inner(value)


def _in_object(fields: Mapping[str, _Finder]) -> _Finder:
    return lambda value: (token for name, find in fields.items() if name in value for token in find(value[name]))


def _in_tuple(finders: Iterable[_Finder | None]) -> _Finder:
    entries = [(entry, find) for entry, find in enumerate(finders) if find]
    return lambda value: (token for entry, find in entries for token in find(value[entry]))
