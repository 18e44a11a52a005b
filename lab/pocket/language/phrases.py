"""Phrases: texts with choices and slots, from which a generator draws and by which a checker parses.

A pattern is text with choices `[a|b*3|]` (a weight may follow a star), slots `{name}` whose values are given when it is
used, and other rules `<name>`. A capital, as in `{Name}` or `<Name>`, raises the first letter of what is put there.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ValueSlot:
    """Where a value goes."""

    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several phrases; `bounds` are their summed weights."""

    options: tuple[Template, ...]
    bounds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Phrases one after the other."""

    parts: tuple[Template, ...]


@dataclass(frozen=True, slots=True)
class Capital:
    """A phrase whose first letter is raised."""

    phrase: Template


@dataclass(frozen=True, slots=True)
class Filled:
    """A phrase with values of its own in its slots."""

    phrase: Template
    values: SlotValues


Template: TypeAlias = "str | ValueSlot | Choice | Concatenation | Capital | Filled"
# A slot's value is itself a phrase, or one of several texts; to a reader, also whatever fits an expression.
SlotValues: TypeAlias = Mapping[str, "Template | tuple[str, ...]"]
OpenValues: TypeAlias = Mapping[str, "Template | tuple[str, ...] | re.Pattern[str]"]
Bound: TypeAlias = tuple[tuple[str, str], ...]  # what a reader found in the slots that might hold one of several texts
Bounds: TypeAlias = Callable[[int], tuple[float, ...]]

_PIECE = re.compile(r"\[|(?:\*[0-9.]+)?[|\]]|\{\w+\}|<\w+>|(?:[^\[\]|{}<>*]|\*(?![0-9.]+[|\]])|(?<=-)>)+")


@cache
def even(count: int) -> tuple[float, ...]:
    """Return the bounds of options that are drawn equally often."""
    return tuple(accumulate([1.0] * count))


@cache
def falling(count: int) -> tuple[float, ...]:
    """Return the bounds of options of which each has 0.7 of the weight of the one before: uneven, as in real text."""
    weights = [0.7**place for place in range(count)]
    return tuple(sum(weights[: place + 1]) / sum(weights) for place in range(count))


@cache
def harmonic(count: int) -> tuple[float, ...]:
    """Return the bounds of options whose weights are 2/3, 2/5, 2/7, ..."""
    return tuple(accumulate(1 / (place + 1.5) for place in range(count)))


def pick(rng: Random, bounds: Sequence[float]) -> int:
    """Draw an index by the summed weights."""
    return bisect(bounds, rng.random() * bounds[-1], hi=len(bounds) - 1)


def parse_template(pattern: str, bounds: Bounds = even, rules: Mapping[str, Template] | None = None) -> Template:
    """Parse a pattern into a template; `bounds` weighs the options of the choices that have no stars."""
    pieces = _PIECE.findall(pattern)
    outer: list[
        tuple[list[Template], list[Template], list[str]]
    ] = []  # of open choices: parts before, options, weights
    parts: list[Template] = []
    for piece in pieces:
        if piece == "[":
            outer.append((parts, [], []))
            parts = []
        elif piece[-1] not in "|]":
            parts.append(_named(piece, rules or {}) if piece[0] in "{<" else piece)
        elif outer:
            before, options, weights = outer[-1]
            options.append(_joined(parts))
            weights.append(piece[1:-1])
            parts = []
            if piece[-1] == "]":
                summed = tuple(accumulate(float(weight or 1) for weight in weights))
                parts = [*before, Choice(tuple(options), summed if any(weights) else bounds(len(options)))]
                outer.pop()
        else:
            raise ValueError(f"a pattern with a sign outside brackets: {pattern}")
    if outer or "".join(pieces) != pattern:
        raise ValueError(f"not a pattern: {pattern}")
    return _joined(parts)


def grammar(rules: Mapping[str, str]) -> dict[str, Template]:
    """Parse rules into templates; a rule may use only those above it, so every rule ends."""
    made: dict[str, Template] = {}
    for name, pattern in rules.items():
        made[name] = parse_template(pattern, rules=made)
    return made


def write(phrase: Template, values: SlotValues, rng: Random) -> str:
    """Write one of the texts of a template; of several texts for a slot, each is as likely."""
    out: list[str] = []
    _write(phrase, values, rng, out)
    return "".join(out)


def read(phrase: Template, values: OpenValues, text: str, start: int = 0) -> Bound | None:
    """Return the open slots' values with which the template gives the text from a position on; None if none do."""
    return ends(phrase, values, text, start).get(len(text))


def ends(phrase: Template, values: OpenValues, text: str, start: int = 0) -> dict[int, Bound]:
    """Return where the template can end in the text, with the open slots' values on the way there.

    All ways are followed at once and become one where they meet, so time does not grow with their number.
    """
    return _ends(phrase, values, text, {start: ()})


def _joined(parts: list[Template]) -> Template:
    return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))


def _named(piece: str, rules: Mapping[str, Template]) -> Template:
    """Return a slot or another rule."""
    name = piece[1].lower() + piece[2:-1]
    phrase = ValueSlot(name) if piece[0] == "{" else rules[name]
    if piece[1] == name[0]:
        return phrase
    if read(phrase, {}, "") is not None:
        raise ValueError(f"{piece} may be empty, so that it has no first letter to raise")
    return Capital(phrase)


def _write(phrase: Template, values: SlotValues, rng: Random, out: list[str]) -> None:
    while type(phrase) is Choice:
        phrase = phrase.options[pick(rng, phrase.bounds)]
    if type(phrase) is str:
        out.append(phrase)
    elif type(phrase) is Concatenation:
        for part in phrase.parts:
            _write(part, values, rng, out)
    elif type(phrase) is Capital:
        text = write(phrase.phrase, values, rng)
        out.append(text[:1].upper() + text[1:])
    elif type(phrase) is Filled:
        _write(phrase.phrase, phrase.values, rng, out)
    elif type(phrase) is ValueSlot:
        value = values[phrase.name]
        if isinstance(value, tuple):
            out.append(value[pick(rng, even(len(value)))] if len(value) > 1 else value[0])
        else:
            _write(value, values, rng, out)


def _ends(phrase: Template, values: OpenValues, text: str, starts: dict[int, Bound]) -> dict[int, Bound]:
    """Return where the template can end when it starts at one of the positions."""
    if not starts:
        return starts
    if isinstance(phrase, str):
        return {at + len(phrase): bound for at, bound in starts.items() if text.startswith(phrase, at)}
    if isinstance(phrase, Concatenation):
        for part in phrase.parts:
            starts = _ends(part, values, text, starts)
        return starts
    if isinstance(phrase, Filled):
        return _ends(phrase.phrase, phrase.values, text, starts)
    if isinstance(phrase, ValueSlot):
        return _slot_ends(phrase.name, values, text, starts)
    ends_here: dict[int, Bound] = {}
    if isinstance(phrase, Choice):
        for option in phrase.options:
            for end, bound in _ends(option, values, text, starts).items():
                ends_here.setdefault(end, bound)
        return ends_here
    for at, bound in starts.items():
        letter = text[at : at + 1]
        if letter.lower().upper() == letter:
            for version in (text, text[:at] + letter.lower() + text[at + 1 :]):
                for end, more in _ends(phrase.phrase, values, version, {at: bound}).items():
                    ends_here.setdefault(end, more)
    return ends_here


def _slot_ends(name: str, values: OpenValues, text: str, starts: dict[int, Bound]) -> dict[int, Bound]:
    value = values.get(name, ())
    if not isinstance(value, (tuple, re.Pattern)):
        return _ends(value, values, text, starts)
    ends_here: dict[int, Bound] = {}
    for at, bound in starts.items():
        if isinstance(value, tuple):
            fitting = [option for option in value if text.startswith(option, at)]
        else:
            fitting = [match[0]] if (match := value.match(text, at)) else []
        for one in fitting:
            ends_here.setdefault(at + len(one), (*bound, (name, one)))
    return ends_here
