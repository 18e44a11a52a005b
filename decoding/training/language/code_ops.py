"""An operation of the kind "code": its wordings, its meaning and the Python forms that it can take."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, TypeVar

from .phrases import Phrase, parse, pick, tilted

T = TypeVar("T")
Given = dict[str, str]  # an operation's numbers and texts, as they are written
Apply = Callable[[Any, Given], Any]

pattern = partial(parse, bounds=tilted)

EACH = "[each|every one|all] of {them}"
GIVE = "[return~|give~|find~|give~ back]"
CHECK = "[check~|tell~|say~|return~] [whether|if]"
ABOVE = "[above|over|greater than|larger than|more than] {k}"
BELOW = "[below|under|less than|smaller than] {k}"
_SLOTS = ("k", "letter", "end", "sep", "yes", "no")
_INFIX = (ast.BinOp, ast.Compare, ast.IfExp)


@dataclass(frozen=True, slots=True)
class Op:
    """One operation. `exprs` are expressions, `loops` statements that leave the result in {r}, `ends` return it.

    In the forms, {x} is the input ({a} and {b} where it is a pair), {v} a loop's variable, {r} the loop's result.
    """

    name: str
    takes: str
    gives: str
    do: Phrase  # "keep {them} above {k}"
    does: Phrase  # "keeps {them} above {k}"
    call: Phrase  # the function's name, or a part of it
    apply: Apply
    exprs: tuple[str, ...]
    slots: tuple[str, ...]
    loops: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    cond: str = ""  # keeps the {v} for which this holds
    each: str = ""  # turns every {v} into this
    fold: tuple[str, str] | None = None  # how {e} joins {r} in a loop, and a call over the generator "{e} {g}"
    infix: bool = False  # needs brackets inside another expression
    work: Callable[[Any, Given], str] | None = None  # the steps by hand


def op(name: str, types: str, say: str, call: str, apply: Apply, *exprs: str) -> Op:
    """An operation whose forms are all expressions; "~" stands where a verb's s would be."""
    takes, gives = types.split()
    return Op(
        name,
        takes,
        gives,
        pattern(say.replace("~", "")),
        pattern(say.replace("multiply~", "multiplies").replace("~", "s")),
        pattern(call),
        apply,
        exprs,
        tuple(slot for slot in _SLOTS if f"{{{slot}}}" in say),
        infix=any(_infix(expr) for expr in exprs),
    )


def _infix(expr: str) -> bool:
    return isinstance(ast.parse(re.sub(r"[{}]", "", expr), mode="eval").body, _INFIX)


def favourite(rng: Random, options: Sequence[T]) -> T:
    """One of the options, the first ones a little more often, as in the choices of a pattern."""
    return options[pick(rng, tilted(len(options)))]


def k_of(given: Given) -> int:
    """The operation's number."""
    return int(given["k"])


def adding(items: list[int]) -> str:
    """A sum by hand, one small addition at a time: "4 + 7 = 11, 11 + 5 = 16"."""
    if len(items) < 2:
        return str(sum(items))
    steps, total = [], items[0]
    for item in items[1:]:
        steps.append(f"{total} + {item} = {total + item}")
        total += item
    return ", ".join(steps)
