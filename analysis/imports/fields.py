"""Typed access to the values of an untrusted JSON object; a misfit is one sentence that names line, field and value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn, TypeVar

from decoding.errors import TraceError
from decoding.trace.json_line import show
from decoding.types import JSON

_LARGEST = 2**53  # beyond it, JSON readers in other languages round whole numbers
_LONGEST = 2**22  # entries of a list
_LARGEST_ID = 2**31 - 1
_TOLERANCE = 1e-3  # of a rate or a mean that was rounded for the file

T = TypeVar("T")


def trimmed(counts: Sequence[int]) -> list[int]:
    """Remove the zeros at the end of counts."""
    length = next((place for place in range(len(counts), 0, -1) if counts[place - 1]), 0)
    return list(counts[:length])


class Fields:
    """An object of a record. `where` begins every error, as "line 3: metrics"."""

    def __init__(self, data: Mapping[str, JSON], where: str) -> None:
        self.plain, self.where = data, where

    def __contains__(self, name: str) -> bool:
        """Return True if the object has a value, not null, under a name."""
        return self.plain.get(name) is not None

    def spells(self, *names: str) -> bool:
        """Return True if the object has one of these keys, whatever its value."""
        return any(name in self.plain for name in names)

    def seen(self, name: str) -> Sequence[Fields]:
        """Return the existing objects in a list, or the object itself, to recognise a file."""
        value = self.plain.get(name)
        entries = value if isinstance(value, list) else [value]
        return [Fields(each, self._place(name)) for each in entries if isinstance(each, dict)]

    def names(self) -> Iterator[str]:
        """Return the object's keys."""
        return iter(self.plain)

    def at(self, *names: str) -> Fields | None:
        """Return the object nested under these names; None if there is none."""
        inner = self
        for name in names:
            value = inner.plain.get(name)
            if value is None:
                return None
            if not isinstance(value, dict):
                inner.refuse(name, f"must be an object, not {show(value)}")
            inner = Fields(value, inner._place(name))
        return inner

    def inside(self, name: str) -> Fields:
        """Return the object of this name; refuse the record if it is missing."""
        inner = self.at(name)
        if inner is None:
            self.refuse(name, "must be an object, and is missing")
        return inner

    def only(self, name: str) -> Fields:
        """Return the one object in a list."""
        objects = self.objects(name)
        if len(objects) != 1:
            self.refuse(name, f"must hold one object, not {len(objects)}: write one record for each")
        return objects[0]

    def objects(self, name: str) -> list[Fields]:
        """Return a list of objects."""
        objects = []
        for index, value in enumerate(self._list(name)):
            if not isinstance(value, dict):
                self.refuse(f"{name}[{index}]", f"must be an object, not {show(value)}")
            objects.append(Fields(value, self._place(f"{name}[{index}]")))
        return objects

    def count(self, name: str) -> int:
        """Return a whole number from 0."""
        return self._count(name, self.plain.get(name))

    def maybe_count(self, *names: str) -> int | None:
        """Return the whole number from 0 that is under these names, which must agree; None without any of them."""
        given = self._given(names)
        return self._same([self.count(name) for name in given], given)

    def counts(self, name: str) -> list[int]:
        """Return a list of whole numbers from 0."""
        values = self._list(name)
        return [self._count(f"{name}[{index}]", value) for index, value in enumerate(values)]

    def ids(self, name: str) -> list[int] | None:
        """Return a list of token ids; None if it is missing."""
        if name not in self:
            return None
        ids = self.counts(name)
        if max(ids, default=0) > _LARGEST_ID:
            self.refuse(name, f"holds {show(max(ids))}, which is no token id")
        return ids

    def number(self, name: str) -> float:
        """Return a finite number from 0."""
        return self._number(name, self.plain.get(name))

    def maybe_number(self, *names: str) -> float | None:
        """Return the first of these that is there, a finite number from 0."""
        return next((self.number(name) for name in names if name in self), None)

    def numbers(self, name: str) -> list[float]:
        """Return a list of finite numbers from 0."""
        values = self._list(name)
        return [self._number(f"{name}[{index}]", value) for index, value in enumerate(values)]

    def text(self, name: str) -> str | None:
        """Return a text; None if it is missing."""
        value = self.plain.get(name)
        if value is not None and not isinstance(value, str):
            self.refuse(name, f"must be a text, not {show(value)}")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        values = self._list(name)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                self.refuse(f"{name}[{index}]", f"must be a text, not {show(value)}")
        return values

    def label(self, name: str) -> str | None:
        """Return a name, which may be a number in the file."""
        value = self.plain.get(name)
        return str(value) if type(value) is int and abs(value) <= _LARGEST else self.text(name)

    def histogram(self, name: str) -> list[int]:
        """Return counts by a whole number, from a list or from an object whose keys are the numbers."""
        value = self.plain.get(name)
        if not isinstance(value, dict):
            return self.counts(name)
        counts: dict[int, int] = {}
        for key, count in value.items():
            if not (key.isascii() and key.isdigit() and len(key) <= 6):
                self.refuse(name, f"has the key {show(key)}, which must be a whole number below 1,000,000")
            counts[int(key)] = counts.get(int(key), 0) + self._count(f"{name}[{key}]", count)
        return [counts.get(place, 0) for place in range(max(counts, default=-1) + 1)]

    def maybe_histogram(self, *names: str) -> list[int] | None:
        """Return the counts that are under these names, which must agree; None without any of them."""
        given = self._given(names)
        return self._same([trimmed(self.histogram(name)) for name in given], given)

    def _given(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name in self]

    def _same(self, values: Sequence[T], names: Sequence[str]) -> T | None:
        for value, name in zip(values, names, strict=True):
            if value != values[0]:
                self.refuse(name, f"holds another value than {names[0]}, which counts the same")
        return values[0] if values else None

    def agree(self, name: str, value: float, what: str, expected: float, slack: float = 0.0) -> None:
        """Refuse the record if a field's number is not the one that `what` gives."""
        if abs(value - expected) > slack:
            self.refuse(name, f"is {value:.10g}, but {what} give {expected:.10g}")

    def about(self, name: str, what: str, expected: float) -> None:
        """Refuse the record likewise for a rate or a mean, which the file may have rounded, if it is there."""
        if name in self:
            self.agree(name, self.number(name), what, expected, _TOLERANCE * max(1.0, abs(expected)))

    def refuse(self, name: str, why: str) -> NoReturn:
        """Refuse the record for what a field holds."""
        raise TraceError(f"{self._place(name)} {why}")

    def _place(self, name: str) -> str:
        return f"{self.where}{'.' if ': ' in self.where else ': '}{name}"

    def _list(self, name: str) -> list[JSON]:
        value = self.plain.get(name)
        if not isinstance(value, list):
            self.refuse(name, f"must be a list, not {show(value)}")
        if len(value) > _LONGEST:
            self.refuse(name, f"has {len(value)} entries, more than the {_LONGEST} that are read")
        return value

    def _count(self, name: str, value: JSON) -> int:
        if type(value) is float and value.is_integer() and 0 <= value <= _LARGEST:
            return int(value)
        if type(value) is not int or not 0 <= value <= _LARGEST:
            self.refuse(name, f"must be a whole number from 0, not {show(value)}")
        return value

    def _number(self, name: str, value: JSON) -> float:
        if type(value) not in (int, float) or not 0 <= value <= _LARGEST or not math.isfinite(value):
            self.refuse(name, f"must be a number from 0, not {show(value)}")
        return float(value)
