"""An untrusted line of bytes -> a JSON object; refuses everything that JSON readers disagree about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn

from .errors import TraceError
from .types import JSON

_SNIPPET = 40
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


class NotJsonError(TraceError):
    """Text that is no JSON: what a line cut off in the middle looks like, too."""


def parse_object(line: bytes, where: str, depth: int) -> dict[str, JSON]:
    """The object in `line`, whose values nest at most `depth` levels; `where` begins an error."""
    if _deeper(line, depth + 2):  # around a value stand the field that holds it and the line's object
        raise TraceError(f"{where} nests lists or objects deeper than {depth} levels")
    try:
        data = json.loads(line.decode(), object_pairs_hook=_pairs, parse_constant=_constant)
    except TraceError as error:
        raise TraceError(f"{where} {error}") from None
    except UnicodeDecodeError as error:
        raise NotJsonError(f"{where} is not UTF-8 at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{where} is not JSON at character {error.pos + 1}: {error.msg}") from None
    except ValueError:  # the interpreter's own limit, without which converting digits takes quadratic time
        raise TraceError(f"{where} holds a number with too many digits") from None
    if not isinstance(data, dict):
        raise TraceError(f"{where} must be a JSON object, not {show(data)}")
    return data


def show(value: object) -> str:
    """A value for an error sentence: short, with control characters visible."""
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


def _deeper(line: bytes, depth: int) -> bool:
    """Whether brackets outside of strings nest deeper: asked before the parser recurses into them."""
    bare = b"".join(line.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
    brackets = bare.translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(depth):
        outer = brackets.replace(b"[]", b"")  # peels the innermost level everywhere
        if len(outer) == len(brackets):  # nothing left, or brackets without a partner
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
