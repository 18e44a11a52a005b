"""The operations of the kind "code": the words of each, its meaning, and at most two ways to write it in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .phrases import Template, parse_template

Operands = dict[str, str]  # an operation's number or sign, as it is written


@dataclass(frozen=True, slots=True)
class Op:
    """One operation. In the bodies, {x} is the argument, {a} and {b} are the two of a pair."""

    name: str  # also the first part of the function's name
    takes: str
    what: Template  # what it returns: "the numbers above {k}"
    apply: Callable[[Any, Operands], Any]
    bodies: tuple[str, ...]
    ks: tuple[int, ...]  # the numbers that it may ask for
    signs: bool  # whether it asks for a sign
    work: Callable[[Any, Operands], str] | None  # the steps by hand, of which the last ends with the result

    def steps(self, argument: Any, given: Operands) -> str:
        """Write the steps by hand down to the result."""
        return self.work(argument, given) if self.work else str(self.apply(argument, given))


def _op(
    name: str,
    takes: str,
    what: str,
    apply: Callable[[Any, Operands], Any],
    *bodies: str,
    ks: range = range(1, 8),
    work: Callable[[Any, Operands], str] | None = None,
) -> Op:
    asked = tuple(ks) if "{k}" in what else ()
    return Op(name, takes, parse_template(what), apply, bodies, asked, "{sign}" in what, work)


def _k(given: Operands) -> int:
    return int(given["k"])


def _above(items: list[int], given: Operands) -> list[int]:
    return [item for item in items if item > _k(given)]


def _adding(items: list[int]) -> str:
    """Write a sum by hand, one small addition at a time: "4 + 7 = 11, 11 + 5 = 16"."""
    if len(items) < 2:
        return str(sum(items))
    totals = [sum(items[: count + 1]) for count in range(len(items))]
    return ", ".join(
        f"{before} + {item} = {after}" for before, item, after in zip(totals, items[1:], totals[1:], strict=False)
    )


def _mixing(pair: tuple[int, int], given: Operands) -> str:
    product = _k(given) * pair[1]
    return f"{given['k']} * {pair[1]} = {product}, {pair[0]} + {product} = {pair[0] + product}"


def _loop(start: str, *lines: str) -> str:
    inner = "".join(f"    {line}\n" for line in lines)
    return f"result = {start}\nfor n in {{x}}:\n{inner}return result"


def _keeping(name: str, what: str, test: str, apply: Callable[[Any, Operands], Any]) -> Op:
    loop = _loop("[]", f"if {test}:", "    result.append(n)")
    return _op(name, "numbers", what, apply, f"return [n for n in {{x}} if {test}]", loop)


def _changing(name: str, what: str, each: str, apply: Callable[[Any, Operands], Any], ks: range = range(1, 8)) -> Op:
    loop = _loop("[]", f"result.append({each})")
    return _op(name, "numbers", what, apply, f"return [{each} for n in {{x}}]", loop, ks=ks)


_LISTS = (
    _op(
        "total",
        "numbers",
        "the sum of the numbers",
        lambda x, g: sum(x),
        "return sum({x})",
        _loop("0", "result += n"),
        work=lambda x, g: _adding(x),
    ),
    _op(
        "total_above",
        "numbers",
        "the sum of the numbers above {k}",
        lambda x, g: sum(_above(x, g)),
        "return sum(n for n in {x} if n > {k})",
        _loop("0", "if n > {k}:", "    result += n"),
        work=lambda x, g: f"{_above(x, g)}, {_adding(_above(x, g))}",
    ),
    _op(
        "count",
        "numbers",
        "the count of the numbers",
        lambda x, g: len(x),
        "return len({x})",
        _loop("0", "result += 1"),
    ),
    _op(
        "count_above",
        "numbers",
        "the count of the numbers above {k}",
        lambda x, g: len(_above(x, g)),
        "return sum(1 for n in {x} if n > {k})",
        _loop("0", "if n > {k}:", "    result += 1"),
        work=lambda x, g: f"{_above(x, g)}, {len(_above(x, g))}",
    ),
    _op(
        "largest",
        "numbers",
        "the largest number",
        lambda x, g: max(x),
        "return max({x})",
        _loop("{x}[0]", "if n > result:", "    result = n"),
    ),
    _op(
        "smallest",
        "numbers",
        "the smallest number",
        lambda x, g: min(x),
        "return min({x})",
        _loop("{x}[0]", "if n < result:", "    result = n"),
    ),
    _keeping("above", "the numbers above {k}", "n > {k}", _above),
    _keeping("below", "the numbers below {k}", "n < {k}", lambda x, g: [n for n in x if n < _k(g)]),
    _keeping("even", "the even numbers", "n % 2 == 0", lambda x, g: [n for n in x if n % 2 == 0]),
    _changing("double", "each number doubled", "n * 2", lambda x, g: [n * 2 for n in x]),
    _changing("plus", "each number plus {k}", "n + {k}", lambda x, g: [n + _k(g) for n in x]),
    _changing("times", "each number times {k}", "n * {k}", lambda x, g: [n * _k(g) for n in x], range(2, 4)),
    _op("first", "numbers", "the first number", lambda x, g: x[0], "return {x}[0]"),
    _op("last", "numbers", "the last number", lambda x, g: x[-1], "return {x}[-1]"),
    _op(
        "reverse",
        "numbers",
        "the numbers in reverse",
        lambda x, g: x[::-1],
        "return {x}[::-1]",
        _loop("[]", "result = [n] + result"),
    ),
)
_OTHERS = (
    _op("join", "words", 'the words joined with "{sign}"', lambda x, g: g["sign"].join(x), 'return "{sign}".join({x})'),
    _op("upper", "word", "the word in capitals", lambda x, g: x.upper(), "return {x}.upper()"),
    _op("length", "word", "the length of the word", lambda x, g: len(x), "return len({x})", _loop("0", "result += 1")),
    _op("initial", "word", "the first letter of the word", lambda x, g: x[0], "return {x}[0]"),
    _op("repeat", "word", "the word {k} times", lambda x, g: x * _k(g), "return {x} * {k}", ks=range(2, 5)),
    _op(
        "bigger",
        "pair",
        "the bigger of the two numbers",
        lambda x, g: max(x),
        "return max({a}, {b})",
        "if {a} > {b}:\n    return {a}\nreturn {b}",
    ),
    _op(
        "mix",
        "pair",
        "the first number plus {k} times the second",
        lambda x, g: x[0] + _k(g) * x[1],
        "return {a} + {k} * {b}",
        ks=range(2, 4),
        work=_mixing,
    ),
    _op(
        "minus",
        "pair",
        "the first number minus the second",
        lambda x, g: x[0] - x[1],
        "return {a} - {b}",
        work=lambda x, g: f"{x[0]} - {x[1]} = {x[0] - x[1]}",
    ),
    _op(
        "compare",
        "number",
        '"yes" if the number is above {k} and "no" if not',
        lambda x, g: "yes" if x > _k(g) else "no",
        'return "yes" if {x} > {k} else "no"',
        'if {x} > {k}:\n    return "yes"\nreturn "no"',
    ),
)
OPS: dict[str, Op] = {each.name: each for each in (*_LISTS, *_OTHERS)}
