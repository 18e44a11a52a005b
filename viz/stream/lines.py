"""Writes the lines of a run's stream, and keeps what earlier lines hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import token_text
from . import encode

_MOST, _LONGEST = 64, 200  # entries of a header's object that are written, and characters of their texts
_FEW = 48  # numbers that may be shorter as they are
_SHORTEST = 24  # characters of a part that is worth a number
_write = json.JSONEncoder(separators=(",", ":")).encode
_quote = json.encoder.encode_basestring_ascii


def line(kind: str, **fields: Any) -> str:
    """Write a line in pure ASCII, since texts are hostile: some readers take U+2028 for a line's end."""
    return json.dumps({"kind": kind, **fields}, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"


def texts_line(texts: Mapping[int, str], tokens: Iterable[int], write: Callable[..., str] = line) -> str:
    """Return display texts of tokens, and what figures show instead where that differs."""
    raw = {token: token_text.raw(texts[token]) for token in sorted(set(tokens)) if token in texts}
    shown = {token: token_text.shown(texts[token]) for token in raw}
    return write("texts", texts=raw, shown={t: text for t, text in shown.items() if text != raw[t]}) if raw else ""


def scalars(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers and short texts of an object that may come from a hostile file."""
    plain = [(name, value) for name, value in given.items() if value is None or isinstance(value, str | int | float)]
    return {name[:_LONGEST]: value[:_LONGEST] if isinstance(value, str) else value for name, value in plain[:_MOST]}


def ids_in(value: encode.Encoded) -> Iterator[int]:
    """Return the tokens whose texts a line uses."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name in ("token", "choice", "tokens") and not isinstance(part, str):
                yield from (token for token in numbers(part) if token >= 0)
            else:
                yield from ids_in(part)
    elif isinstance(value, list | tuple) and not _begins_with_number(value):
        for part in value:
            yield from ids_in(part)


def numbers(array: encode.Encoded) -> list[int]:
    """Return the numbers of an array, packed or plain."""
    plain: list[int] = encode.unpack(array).tolist() if isinstance(array, dict) else array
    return plain


def shortest(packed: Mapping[str, str]) -> encode.Encoded:
    """Return an array, or where that takes fewer characters its plain numbers."""
    if "shape" in packed or encode.size(packed) > _FEW:
        return packed
    values = encode.unpack(packed)
    plain: list[float] = values.tolist()
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            return packed
        written = [float(str(value)) for value in values]  # as short as the array's own precision allows
        plain = [int(value) if value.is_integer() else value for value in written]
    return plain if len(_write(plain)) <= len(_write(packed)) else packed


def _begins_with_number(values: Sequence[encode.Encoded]) -> bool:
    """Return True if a list begins with a number, and so holds nothing that is encoded."""
    return bool(values) and isinstance(values[0], int | float)


class Strings:
    """The run's table of strings: each is written once and then meant by its number.

    Once it is closed nothing more is written: what is not in it is sent as it is.
    """

    def __init__(self, write: Callable[..., str] = line, closed: bool = False) -> None:
        self._write = write
        self.number_of: dict[str, int] = {}
        self.closed = closed
        self._written = 0

    def numbers(self, given: Iterable[str]) -> encode.Encoded:
        """Return the numbers of some strings; the strings themselves where a closed table does not hold all of them."""
        strings = [*given]
        if self.closed and not self.number_of.keys() >= set(strings):
            return strings
        numbers = [self.number_of.setdefault(string, len(self.number_of)) for string in strings]
        most = max(numbers, default=0)
        return shortest(encode.pack(numbers, "u1" if most < 2**8 else "u2" if most < 2**16 else "i4"))

    def replace(self, value: encode.Encoded) -> encode.Encoded:
        """Replace the lists of strings in a patch by numbers."""
        if isinstance(value, dict):
            if isinstance(value.get("strings"), list | tuple):
                return {"strings": self.numbers(value["strings"])}
            if "bdata" in value:
                return shortest(value)
            return {name: self.replace(part) for name, part in value.items()}
        plain = not isinstance(value, list | tuple) or _begins_with_number(value)
        return value if plain else [self.replace(part) for part in value]

    def line(self) -> str:
        """Write what the stream does not hold yet."""
        new = [*self.number_of][self._written :]
        self._written = len(self.number_of)
        return self._write("strings", strings=new) if new else ""


_Parts = Sequence[tuple[str, "_Parts"]]  # what `_spelled` returns of each part of a value


def _spelled(value: encode.Encoded) -> tuple[str, _Parts]:
    """Return a value as it is written, and the same of its parts: each is written once, however deep it lies."""
    if isinstance(value, str):
        return _quote(value), ()
    if isinstance(value, dict):
        parts = [_spelled(part) for part in value.values()]
        entries = [f"{_quote(name)}:{written}" for name, (written, _) in zip(value, parts, strict=True)]
        return "{" + ",".join(entries) + "}", parts
    if isinstance(value, list | tuple) and not _begins_with_number(value):
        parts = [_spelled(part) for part in value]
        return "[" + ",".join([written for written, _ in parts]) + "]", parts
    return _write(value), ()


class Values:
    """The run's table of values: what steps repeat is written once, when it comes for the second time."""

    def __init__(self, write: Callable[..., str] = line) -> None:
        self._write = write
        self._seen = set[int]()
        self._number_of: dict[str, int] = {}
        self._new: list[encode.Encoded] = []

    def replace(self, value: encode.Encoded) -> encode.Encoded:
        """Replace what the table holds in a part of a step by {"same": number}."""
        return self._replace(value, *_spelled(value))

    def _replace(self, value: encode.Encoded, written: str, parts: _Parts) -> encode.Encoded:
        if not isinstance(value, dict | list | tuple):
            return value
        if len(written) >= _SHORTEST:
            if written in self._number_of:
                return {"same": self._number_of[written]}
            if hash(written) in self._seen:
                self._new.append(value)
                return {"same": self._number_of.setdefault(written, len(self._number_of))}
            self._seen.add(hash(written))
        if isinstance(value, dict):
            values = zip(value.values(), parts, strict=True)
            return dict(zip(value, [self._replace(part, *spelled) for part, spelled in values], strict=True))
        if _begins_with_number(value):
            return value
        return [self._replace(part, *spelled) for part, spelled in zip(value, parts, strict=True)]

    def new(self) -> list[encode.Encoded]:
        """Return what was added to the table since the last call."""
        new, self._new = self._new, []
        return new

    def line(self) -> str:
        """Write what the stream does not hold yet."""
        new = self.new()
        return self._write("values", values=new) if new else ""
