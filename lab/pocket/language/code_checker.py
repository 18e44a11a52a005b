"""Judges the answers of the kind "code": parses the code, and compares its meaning with the reference."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Any

from .code_evaluator import RefusedError, call
from .code_operations import OPS, Op, Operands
from .code_reader import BROKEN, take_apart
from .phrases import Concatenation, Filled, OpenValues, parse_template, read
from .wishes import WISH

BEFORE = parse_template(
    "[Here is*4|Sure, here is*3|This is*2|Now here is*2] [a*4|one*3|my*2|the*2] [short*4|small*3|simple*2|plain*2] "
    "[function*4|program*3|script*2] for [this*4|that*3|you*2|it*2][:*6|.*4]"
)
DOC = parse_template("Return {what}[*4|, as asked*3|, nothing more*2|, nothing else*2].")
RESULT = parse_template("[It*4|The call*3|This*2|Running it*2] [prints*4|gives*3|shows*2|writes*2] {value}.")
REMARK = parse_template(
    "[You can*4|You may*3|Feel free to*2|Please*2] [try*4|use*3|pass*2|give it*2] "
    "[another*4|any other*3|your own*2|a new*2] {one}[*4| too*3| next*2| now*2][.*6|!*4][ <wish>*4|*1]",
    rules={"wish": WISH},
)
ONE = {"numbers": "list", "words": "list", "pair": "pair", "number": "number", "word": "word"}
PROBES: dict[str, tuple[Any, ...]] = {  # arguments on which a function must give what is asked for
    "numbers": (
        [4, 1, 7],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [9, 3, 8, 2, 6, 0, 7, 5, 1, 4],
        [5],
        [2, 2, 9, 9],
        [7, 7, 7],
        [-3, -1, -2],
        [12, 30, 21],
        [1, 0],
        [8, 6, 4],
        [],
    ),
    "number": (*range(11), 17, 24),
    "pair": ((1, 2), (2, 1), (7, 3), (3, 7), (5, 5), (0, 9), (9, 0), (11, 4), (4, 13)),
    "word": ("plum", "apple", "a", "zebra", "moss", "abcdefghijklmnopqrstuvwxyz", "level"),
    "words": (
        ["plum", "fig"],
        ["apple", "pear", "plum", "fig"],
        ["zebra"],
        ["a", "b", "c"],
        ["rose", "rain", "ring", "sun", "snow", "tree", "lake", "moss"],
        [],
    ),
}
_SLOTS: OpenValues = {"k": re.compile(r"[0-9]"), "sign": re.compile(r"[-+/]")}


def right(prompt: str, answer: str, reference: str) -> bool:
    """Return whether the answer does what the reference does, on the same argument, and says only what is true.

    The reference was written for the prompt, so it has the prompt's argument and wishes; names are free.
    """
    try:
        expected, code = _expected(reference), take_apart(answer)
        if expected is None or code is None:
            return False
        op, given, argument = expected
        value = str(op.apply(argument, given))
        return (
            repr(code.arguments) == repr(_arguments(argument))
            and read(BEFORE, {}, code.before) is not None
            and read(DOC, {"what": Filled(op.what, given)}, code.doc) is not None
            and code.comment == f"# {op.steps(argument, given)}"
            and read(Concatenation((RESULT, " ", REMARK)), {"value": value, "one": ONE[op.takes]}, code.after)
            is not None
            and all(_does(code.function, op, given, probe) for probe in (*PROBES[op.takes], argument))
        )
    except (RefusedError, *BROKEN):
        return False


def write_argument(argument: Any) -> str:
    """Write the argument as it is in the prompt and in the call."""
    return str(list(_arguments(argument)))[1:-1].replace("'", '"')


@lru_cache(maxsize=256)
def _expected(reference: str) -> tuple[Op, Operands, Any] | None:
    """Return the result that the reference's docstring states, and its argument."""
    code = take_apart(reference)
    if code is None:
        return None
    for op in OPS.values():
        values = read(DOC, {**_SLOTS, "what": op.what}, code.doc)
        if values is not None:
            return op, dict(values), code.arguments if op.takes == "pair" else code.arguments[0]
    return None


def _arguments(argument: Any) -> tuple[Any, ...]:
    return argument if isinstance(argument, tuple) else (argument,)


def _does(function: ast.FunctionDef, op: Op, given: Operands, probe: Any) -> bool:
    """Return whether the function gives what the operation gives, wherever that gives anything."""
    try:
        expected = op.apply(probe, given)
    except (IndexError, ValueError):
        return True
    return repr(call(function, _arguments(probe))) == repr(expected)
