"""Reads a method's panel. It may come from a file that anyone wrote: what does not fit is as if it were not there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from decoding.types import JSON, Header, Role, Step

_LONGEST = 64  # tokens of an n-gram that are read: no pool holds longer ones
_SOURCE = 48  # characters of a source whose numbers are read
_LARGEST = 2**31  # token ids beyond it do not fit into a patch
_OUTCOMES = ("added", "refreshed", "evicted-oldest")


class Event(NamedTuple):
    """What a pool did with an n-gram."""

    key: int
    ngram: list[int]
    outcome: str

    @property
    def new(self) -> bool:
        """Whether the pool did not hold it."""
        return self.outcome != "refreshed"


def tokens(value: JSON, most: int = 512) -> list[int]:
    """Token ids, at most so many; none where one of them is none."""
    given = value[:most] if isinstance(value, list) else []
    return given if all(type(token) is int and 0 <= token < _LARGEST for token in given) else []


def rows(value: JSON, most: int = 512, longest: int = 512) -> list[list[int]]:
    """Lists of token ids."""
    return [tokens(row, longest) for row in value[:most]] if isinstance(value, list) else []


def ngrams(value: JSON, most: int = 512) -> list[list[int]]:
    """Lists of few token ids."""
    return rows(value, most, _LONGEST)


def events(value: JSON, most: int = 512) -> list[Event]:
    """The n-grams that went into a pool."""
    read: list[Event] = []
    for item in value[:most] if isinstance(value, list) else ():
        if isinstance(item, list) and len(item) == 3 and isinstance(item[2], str) and item[2] in _OUTCOMES:
            key, ngram = tokens(item[:1]), tokens(item[1], _LONGEST)
            read += [Event(key[0], ngram, item[2])] if key and ngram else []
    return read


def part(value: JSON, name: str) -> JSON:
    """An entry of an object; None where there is none."""
    return value.get(name) if isinstance(value, Mapping) else None


def whole(value: JSON, default: int = 0) -> int:
    """A number of things."""
    return value if type(value) is int and 0 <= value < _LARGEST else default


def share(value: JSON) -> float | None:
    """A number from 0 to 1."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value <= 1
    return float(value) if fits else None


def shares(value: JSON, most: int = 512) -> list[float]:
    """Numbers from 0 to 1, up to the first that is none."""
    read: list[float] = []
    for item in value[:most] if isinstance(value, list) else ():
        if (known := share(item)) is None:
            break
        read.append(known)
    return read


def text(value: JSON, longest: int = 24) -> str:
    """A word, of letters, digits and spaces only."""
    return "".join(c for c in value[:longest] if c.isalnum() or c in " -_") if isinstance(value, str) else ""


def setting(header: Header, name: str, least: int, most: int, default: int) -> int:
    """A whole-numbered parameter of the run, within its range."""
    value = header.params.get(name)
    return min(most, max(least, value)) if type(value) is int else default


def guessed(header: Header) -> int:
    """Tokens of an n-gram that are guessed behind its key."""
    return setting(header, "N", 3, 16, 5) - 1 - (header.params.get("drop_bonus") is True)


def root(step: Step) -> int:
    """The last token of the text; -1 where no nodes are recorded."""
    return step.tokens[0] if step.tokens else -1


def detail(source: str) -> tuple[str, tuple[int, ...]]:
    """A source's kind and the numbers behind it: "pool:1,3" gives "pool" and (1, 3)."""
    return _detail(source) if len(source) <= _SOURCE else (source.partition(":")[0], ())


@lru_cache(maxsize=4096)
def _detail(source: str) -> tuple[str, tuple[int, ...]]:
    kind, _, numbers = source.partition(":")
    parts = numbers.split(",") if numbers else []
    known = all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
    return kind, tuple(int(part) for part in parts) if known else ()


class Nodes:
    """Finds the nodes of a step that hold what a panel speaks of."""

    def __init__(self, step: Step) -> None:
        self._step, self._taken = step, frozenset(step.path)
        self._sources: dict[str, int] = {}
        self._children: dict[tuple[int, int], int] = {}
        self.below: dict[int, list[int]] = {}
        for node in range(1, len(step.tokens)):
            if step.roles[node] is Role.EXPLORE and not step.sources[node].startswith("pool"):
                continue
            self._sources.setdefault(step.sources[node], node)
            self._children.setdefault((step.parents[node], step.tokens[node]), node)
            self.below.setdefault(step.parents[node], []).append(node)

    def chain(self, given: Sequence[int], above: int, entry: int | None = None) -> list[int]:
        """The nodes of a chain below `above`, by its number in the pool, else by its tokens; -1: not fed."""
        nodes: list[int] = []
        for place, token in enumerate(given):
            named = -1 if entry is None else self._sources.get(f"pool:{entry},{place}", -1)
            if named < 0 or self._step.tokens[named] != token:
                named = self._children.get((above, token), -1) if above >= 0 else -1
            nodes.append(named)
            above = named
        return nodes

    def accepted(self, nodes: Iterable[int]) -> int:
        """How many of some nodes were accepted; the root among them is no guess."""
        return sum(node in self._taken for node in nodes if node > 0)
