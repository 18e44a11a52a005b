"""Judges the answers of the kind "code": reads the code as a tree and compares what it means with the reference."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from .code_evaluator import RefusedError, call
from .code_families import OPS, THEM
from .code_forms import HINT
from .code_ops import Given, Op
from .code_phrases import (
    BEFORE,
    DOC,
    DOC_END,
    DOC_START,
    NOTES,
    PLAIN_STEPS,
    REMARKS,
    RESULT,
    STEPS,
    THEN,
    VALUE,
    Chain,
    wording,
    working,
)
from .code_reader import BROKEN, Code, take_apart
from .phrases import Filled, OpenValues, Parts, Phrase, Values, ends, read

PROBES: dict[str, tuple[tuple[Any, ...], ...]] = {  # arguments on which two functions must agree
    "numbers": tuple(
        (items,)
        for items in (
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
        )
    ),
    "number": tuple((number,) for number in (*range(11), 17, 24)),
    "pair": ((1, 2), (2, 1), (7, 3), (3, 7), (5, 5), (0, 9), (9, 0), (11, 4), (4, 13)),
    "word": tuple((word,) for word in ("plum", "apple", "a", "zebra", "moss", "abcdefghijklmnopqrstuvwxyz", "level")),
    "words": tuple(
        (words,)
        for words in (
            ["plum", "fig"],
            ["apple", "pear", "plum", "fig"],
            ["zebra"],
            ["a", "b", "c"],
            ["rose", "rain", "ring", "sun", "snow", "tree", "lake", "moss"],
            ["bread", "cake", "duck", "egg", "goat", "hat", "ice", "jam", "kite", "nut", "owl", "queen", "up", "van"],
            [],
        )
    ),
}

_SLOTS: OpenValues = {  # what a docstring may have where an operation has its numbers and texts
    "k": re.compile(r"[0-9]"),
    "letter": re.compile(r"[a-z]"),
    "end": re.compile(r"[a-z]{1,3}"),
    "sep": re.compile(r"[-+/:]"),
    "yes": re.compile(r"[a-z]{2,8}"),
    "no": re.compile(r"[a-z]{2,8}"),
}


def right(prompt: str, answer: str, reference: str) -> bool:
    """Whether the answer does what the reference does, on the same argument, and says only what is true.

    The reference was written for the prompt, so it has the prompt's argument and wishes; names are free.
    """
    try:
        expected, code = _expected(reference), take_apart(answer)
        if expected is None or code is None:
            return False
        chain, model, value = expected
        argument = model.arguments[0] if len(model.arguments) == 1 else model.arguments
        values: Values = {
            "do": wording(chain, False),
            "does": wording(chain, True),
            "value": value,
            "arg": _source_of(model.arguments),
            "work": working(chain, argument) or "\0",
        }
        return (
            repr(code.arguments) == repr(model.arguments)
            and read(DOC, values, code.doc) is not None
            and _hints_right(code.function, chain)
            and _told(code, chain, values)
            and _same(code.function, model.function, (*PROBES[chain[0][0].takes], model.arguments))
        )
    except (RefusedError, *BROKEN):
        return False


@lru_cache(maxsize=256)
def _expected(reference: str) -> tuple[Chain, Code, str] | None:
    """What the reference's docstring says it does, its parts, and what its call prints."""
    code = take_apart(reference)
    chain = chain_of(code.doc, _type_of(code.arguments)) if code else None
    return (chain, code, str(call(code.function, code.arguments))) if code and chain else None


def chain_of(doc: str, takes: str) -> Chain | None:
    """The operations that a docstring tells of, the first on an argument of this type."""
    for start in ends(DOC_START, {}, doc):
        for first, given, end in _starts(doc, start, 0, takes):
            if read(DOC_END, {}, doc, end) is not None:
                return ((first, given),)
            for at in ends(THEN, {}, doc, end):
                for second, other, last in _starts(doc, at, 1, first.gives):
                    if read(DOC_END, {}, doc, last) is not None:
                        return ((first, given), (second, other))
    return None


def _starts(doc: str, at: int, number: int, takes: str) -> Iterator[tuple[Op, Given, int]]:
    for op in OPS.values():
        if op.takes == takes:
            for end, found in ends(op.do, {**_SLOTS, "them": THEM[op.takes][number]}, doc, at).items():
                yield op, dict(found), end


def _type_of(arguments: tuple[Any, ...]) -> str:
    """The type that operations have for what a function is called with."""
    if len(arguments) == 2:
        return "pair"
    many = isinstance(arguments[0], list)
    word = isinstance(arguments[0][0] if many and arguments[0] else arguments[0], str)
    return ("word" if word else "number") + "s" * many


def _source_of(arguments: tuple[Any, ...]) -> str:
    return str(list(arguments))[1:-1].replace("'", '"')


def _hints_right(function: ast.FunctionDef, chain: Chain) -> bool:
    """Whether the types that the function's head names, if any, are the chain's."""
    takes, gives = HINT[chain[0][0].takes], HINT[chain[-1][0].gives]
    hints = [(arg.annotation, takes) for arg in function.args.args] + [(function.returns, gives)]
    return all(hint is None or ast.unparse(hint) == name for hint, name in hints)


def _told(code: Code, chain: Chain, values: Values) -> bool:
    """Whether all that the answer says around its code is true, and the result is among it."""
    if code.before and read(BEFORE, values, code.before) is None:
        return False
    remarks = _remarks(code.function, chain)
    stated = False
    if code.after:
        both: list[tuple[Phrase, bool]] = [(RESULT, True), *((remark, False) for remark in remarks)]
        both += [(Parts((RESULT, " ", remark)), True) for remark in remarks]
        told = [says for phrase, says in both if read(phrase, values, code.after) is not None]
        if not told:
            return False
        stated = any(told)
    kinds = [_comment(text, own, inside, values) for text, own, inside in code.comments]
    if None in kinds or len(set(kinds)) < len(kinds):
        return False
    if "loop" in kinds and not _has_loop(code.function):
        return False
    return stated or bool({"value", "steps"} & set(kinds))


def _comment(text: str, own: bool, inside: bool, values: Values) -> str | None:
    """What a comment is; None where it says nothing that is true in its place."""
    kinds = {"loop": NOTES["loop"], "end": NOTES["end"]} if inside else {"call": NOTES["call"], "steps": STEPS}
    kinds = kinds if own else {"steps": PLAIN_STEPS, "value": VALUE}
    return next((kind for kind, phrase in kinds.items() if read(phrase, values, text) is not None), None)


def _has_loop(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.For) for node in ast.walk(function))


def _remarks(function: ast.FunctionDef, chain: Chain) -> list[Phrase]:
    """The remarks that are true of the function."""
    assigned = {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    last = function.body[-1]
    remarks = [REMARKS[chain[0][0].takes]] + [REMARKS["loop"]] * _has_loop(function)
    if isinstance(last, ast.Return) and isinstance(last.value, ast.Name) and last.value.id in assigned:
        remarks.append(Filled(REMARKS["var"], {"var": last.value.id}))
    return remarks


def _same(function: ast.FunctionDef, model: ast.FunctionDef, probes: tuple[tuple[Any, ...], ...]) -> bool:
    """Whether two functions give the same on every probe on which the second one gives anything."""
    for probe in probes:
        try:
            expected = call(model, probe)
        except RefusedError:
            continue
        if repr(call(function, probe)) != repr(expected):
            return False
    return True
