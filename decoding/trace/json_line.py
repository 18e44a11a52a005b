"""Parses an untrusted line of bytes as a JSON object; refuses everything that JSON readers disagree about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import NoReturn

from ..errors import TraceError
from ..types import JSON

_SNIPPET = 40
_PIECE = 2**16  # bytes
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_BEGINNINGS = (b"[", b"{", b",", b":")  # outside of strings one precedes every value and key, or opens an empty list
# Matches a lone surrogate's escape as group 1; also skips pairs, which are one character, and escaped backslashes.
_HALF = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


class NotJsonError(TraceError):
    """A text is not JSON, or a line was cut off in the middle."""


def parse_object(
    line: bytes, where: str, depth: int, count: Callable[[int], None] = lambda values: None
) -> dict[str, JSON]:
    """Parse the object in `line`, whose values nest at most `depth` levels; `where` begins an error.

    `count` is called with the number of values in the line before any of them is built; it may raise an error. Lone
    surrogates, which JSON can spell and no file or answer can hold, become replacement characters.
    """
    bare = _outside(line)
    count(sum(map(bare.count, _BEGINNINGS)))
    if _deeper(bare, depth + 2):  # a value is inside its field, which is inside the line's object
        raise TraceError(f"{where} nests lists or objects deeper than {depth} levels")
    try:
        data = json.loads(_whole_characters(line).decode(), object_pairs_hook=_pairs, parse_constant=_constant)
    except TraceError as error:
        raise TraceError(f"{where} {error}") from None
    except UnicodeDecodeError as error:
        raise NotJsonError(f"{where} is not UTF-8 at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{where} is not JSON at character {error.pos + 1}: {error.msg}") from None
    except ValueError:  # the interpreter limits digits, as converting them takes quadratic time
        raise TraceError(f"{where} holds a number with too many digits") from None
    if not isinstance(data, dict):
        raise TraceError(f"{where} must be a JSON object, not {show(data)}")
    return data


def show(value: object) -> str:
    """Format a value for an error message: short, with control characters visible."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge number"
    text = repr(value[: _SNIPPET + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SNIPPET + 2 else text[:_SNIPPET] + "..."


def values_in(value: JSON) -> int:
    """Count the values and keys in a parsed value as in a line: an empty list or object counts as one."""
    values, waiting = 0, [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            values += max(1, 2 * len(inner))
            waiting.extend(inner.values())
        elif isinstance(inner, list):
            values += max(1, len(inner))
            waiting.extend(inner)
    return values


def _outside(line: bytes) -> bytes:
    """Return the bytes outside of strings."""
    plain = line.replace(rb"\\", b"").replace(rb"\"", b"")
    pieces, inside = list[bytes](), False
    for begin in range(0, len(plain), _PIECE):  # split at once, a line of quotes would take 40 times its size
        parts = plain[begin : begin + _PIECE].split(b'"')
        pieces.append(b"".join(parts[inside::2]))
        inside ^= len(parts) % 2 == 0
    return b"".join(pieces)


def _whole_characters(line: bytes) -> bytes:
    """Replace every lone surrogate with U+FFFD."""
    if b"\\ud" not in line.lower():
        return line
    return _HALF.sub(lambda escape: escape[0] if escape[1] is None else rb"\ufffd", line)


def _deeper(bare: bytes, depth: int) -> bool:
    """Return True if brackets outside of strings nest deeper: checked before the parser recurses into them."""
    brackets = bare.translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(depth):
        outer = brackets.replace(b"[]", b"")  # removes the innermost level everywhere
        if len(outer) == len(brackets):  # empty, or brackets without a partner
            return brackets.count(b"[") > depth
        brackets = outer
    return bool(brackets)


def _pairs(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    data = dict(pairs)
    if len(data) < len(pairs):
        seen = set[str]()
        for name, _ in pairs:
            if name in seen:
                raise TraceError(f"holds the key {show(name)} twice")
            seen.add(name)
    return data


def _constant(name: str) -> NoReturn:
    raise TraceError(f"holds {name}, which is no JSON number")
