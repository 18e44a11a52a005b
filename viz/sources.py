"""Describes where a guess came from: "window:2,5" in a record is row 2, column 5 of a window.

A source is a kind and, after a colon, numbers. The methods' own kinds are in their screens; those that several
methods share are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from . import token_text

LONGEST = 48  # characters of a source that are read: a record from elsewhere may hold anything
# By the kind before the colon; {0} and {1} are the numbers after it.
SHARED_WORDS: dict[str, str] = {
    "root": "the last token of the text",
    "draft": "token {0} of the draft model",
    "pool": "n-gram {0} of the pool, token {1}",
    "prompt": "copied from position {0} of the prompt",
    "output": "copied from position {0}, in the output",
}


def parse(source: str) -> tuple[str, tuple[int, ...]]:
    """Return a source's kind and the numbers after it: "pool:1,3" gives "pool" and (1, 3)."""
    return _parse(source) if len(source) <= LONGEST else (source.partition(":")[0], ())


@lru_cache(maxsize=4096)
def _parse(source: str) -> tuple[str, tuple[int, ...]]:
    kind, _, numbers = source.partition(":")
    parts = numbers.split(",") if numbers else []
    numeric = all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
    return kind, tuple(int(part) for part in parts) if numeric else ()


def window_cell(source: str) -> tuple[int, int]:
    """Return row and column of a cell of a window of guesses; -1, -1 for any other source."""
    kind, _, rest = source.partition(":")
    row, _, column = rest.partition(",")
    is_cell = kind == "window" and row.isdecimal() and column.isdecimal() and len(row) < 5 and len(column) < 5
    return (int(row), int(column)) if is_cell else (-1, -1)


def in_words(source: str, words: Mapping[str, str]) -> str:
    """Describe a source by the templates of its run; sources of an unknown kind are returned as they are."""
    kind, _, rest = source.partition(":")
    numbers = rest.split(",") if rest else []
    template = words.get(kind)
    if template is None or template.count("{") != len(numbers):
        return source[:LONGEST]
    return template.format(*numbers)[: 2 * LONGEST]


def in_a_sentence(source: str, words: Mapping[str, str]) -> str:
    """Describe a source for a sentence; an unknown one is quoted, with all characters visible."""
    kind, numbers = parse(source)
    has_words = kind in words and (numbers or kind == source)
    return in_words(source, words) if has_words else token_text.quoted(source, LONGEST)
