"""The kind "code": a small Python function, its call and what the call prints.

The function does one of 24 simple things. Its docstring has the prompt's words; what is free to choose is how the
answer opens and closes, the function's ending, the argument's name, and whether Python is written as one line or as
a loop.
"""

from __future__ import annotations

from random import Random
from typing import Any

from .code_checker import BEFORE, DOC, ONE, REMARK, RESULT, right, write_argument
from .code_operations import OPS, Op, Operands
from .code_reader import parses
from .phrases import Filled, SlotValues, parse_template, write
from .sample import Sample, Turn

__all__ = ["make", "parses", "right"]

_WORDS = (
    *("plum", "fig", "pear", "apple", "lemon", "rice", "bread", "cake", "soup", "salt", "tree", "leaf", "rose", "moss"),
    *("lake", "river", "stone", "sand", "rain", "snow", "moon", "star", "sun", "hat", "coat", "boot", "ring", "rope"),
    *("boat", "train", "desk", "lamp", "book", "fox", "owl", "bear", "mouse", "frog"),
)
_PROMPT = parse_template(
    "[Write*5|Please write*3|Give me*2] a [|Python ]function that [takes*6|gets*4] {taken} and returns {what}. "
    "[Call it with*5|Then call it with*3|Try it with*2] {arg}."
)
_TAKEN = {"numbers": "a list of numbers", "words": "a list of words", "pair": "two numbers"}
_ENDINGS = parse_template("[_of*5|_from*3|_for*2]")
_PARAMS = {
    "numbers": parse_template("[numbers*5|items*3|values*2]"),
    "words": parse_template("[words*5|texts*3|names*2]"),
    "number": parse_template("[number*5|value*3|x*2]"),
    "word": parse_template("[word*5|text*3|name*2]"),
    "pair": parse_template("[a, b*5|x, y*3|one, two*2]"),
}


def _argument(rng: Random, op: Op) -> Any:
    """Draw what the function is called with; the numbers differ, so that each occurs only once."""
    if op.takes == "numbers":
        return rng.sample(range(10), rng.choice((2, 3) if "total" in op.name else (2, 3, 3, 4)))
    if op.takes == "words":
        return rng.sample(_WORDS, rng.choice((2, 2, 3)))
    if op.takes == "word":
        return rng.choice(_WORDS)
    return tuple(rng.sample(range(1, 10), 2)) if op.takes == "pair" else rng.randint(1, 9)


def _small(op: Op, argument: Any, given: Operands) -> bool:
    """Return whether a small model can reach the result by copying and small tables."""
    value = op.apply(argument, given)
    if isinstance(value, int) and "above" not in op.name:
        return 0 <= value <= 30
    return bool(value)  # something is kept


def _task(rng: Random) -> tuple[Op, Operands, Any]:
    """Draw an operation, its number or sign, and an argument on which the result is small."""
    op = OPS[rng.choice(tuple(OPS))]
    while True:
        given = {"k": str(rng.choice(op.ks))} if op.ks else {"sign": rng.choice("-+/")} if op.signs else {}
        argument = _argument(rng, op)
        if _small(op, argument, given):
            return op, given, argument


def _answer(rng: Random, op: Op, given: Operands, argument: Any) -> str:
    arg, name = write_argument(argument), op.name + write(_ENDINGS, {}, rng)
    params = write(_PARAMS[op.takes], {}, rng)
    a, b = params.split(", ") if op.takes == "pair" else ("", "")
    body = op.bodies[0 if rng.random() < 0.6 else -1].format(x=params, a=a, b=b, **given)
    doc = write(DOC, {"what": Filled(op.what, given)}, rng)
    inner = "\n".join(f"    {line}" for line in (f'"""{doc}"""', *body.split("\n")))
    code = f"def {name}({params}):\n{inner}\n\nprint({name}({arg}))  # {op.steps(argument, given)}"
    result = write(RESULT, {"value": str(op.apply(argument, given))}, rng)
    return f"{write(BEFORE, {}, rng)}\n\n{code}\n\n{result} {write(REMARK, {'one': ONE[op.takes]}, rng)}"


def make(rng: Random) -> Sample:
    """Make a request for a function and a call of it, and one way to write both."""
    op, given, argument = _task(rng)
    values: SlotValues = {
        "taken": _TAKEN.get(op.takes, f"a {op.takes}"),
        "what": Filled(op.what, given),
        "arg": write_argument(argument),
    }
    return Sample("code", (Turn(write(_PROMPT, values, rng), _answer(rng, op, given, argument)),))
