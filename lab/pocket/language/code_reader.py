"""Splits an answer of the kind "code": the text before and after the code, and the code as a tree."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from dataclasses import dataclass
from typing import Any

from .code_evaluator import literal

BROKEN = (SyntaxError, ValueError, RecursionError, MemoryError)
_MOST = 2_000
_TEXT = re.compile(r"[ -~\n]*")


@dataclass(frozen=True, slots=True)
class Code:
    """An answer in parts."""

    before: str
    after: str
    function: ast.FunctionDef
    doc: str
    arguments: tuple[Any, ...]
    comment: str  # the only one, after the call


def parses(answer: str) -> bool:
    """Return whether the answer holds Python that can be parsed, with a function in it."""
    parts = _split(answer)
    tree = _tree(parts[1]) if parts else None
    return tree is not None and any(isinstance(node, ast.FunctionDef) for node in tree.body)


def take_apart(answer: str) -> Code | None:
    """Return the answer's parts, if it is one function with a docstring and one printed call of it with a comment."""
    parts = _split(answer)
    tree = _tree(parts[1]) if parts else None
    if not parts or not tree or len(tree.body) != 2 or not isinstance(tree.body[0], ast.FunctionDef):
        return None
    function = tree.body[0]
    doc = ast.get_docstring(function, clean=False)
    arguments = _printed(tree.body[1], function.name)
    comment = _comment(parts[1])
    if doc is None or arguments is None or comment is None or not _tidy(function):
        return None
    return Code(parts[0], parts[2], function, doc, arguments, comment)


def _split(answer: str) -> tuple[str, str, str] | None:
    """Return what precedes the code, the code from its "def" to its last "print", and what follows."""
    text = answer.strip()
    if len(text) > _MOST or not _TEXT.fullmatch(text):
        return None
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("def ")]
    ends = [number for number, line in enumerate(lines) if line.startswith(("print(", "    "))]
    if not starts or not ends or ends[-1] < starts[0]:
        return None
    code = "\n".join(lines[starts[0] : ends[-1] + 1])
    return "\n".join(lines[: starts[0]]).strip(), code, "\n".join(lines[ends[-1] + 1 :]).strip()


def _tree(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except BROKEN:
        return None


def _tidy(function: ast.FunctionDef) -> bool:
    """Return whether nothing follows a return, only the docstring is a mere value, and no type is named."""
    for node in ast.walk(function):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            statements = block if isinstance(block, list) else []
            if any(isinstance(statement, ast.Return) for statement in statements[:-1]):
                return False
            for statement in statements:
                mere = isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call)
                if mere and statement is not function.body[0]:
                    return False
    typed = function.returns or any(arg.annotation for arg in function.args.args)
    return not (typed or function.decorator_list or getattr(function, "type_params", None))


def _printed(statement: ast.stmt, function: str) -> tuple[Any, ...] | None:
    """Return the arguments of the one call, which is printed."""
    shown = _called(statement.value, "print") if isinstance(statement, ast.Expr) else None
    arguments = _called(shown[0], function) if shown and len(shown) == 1 else None
    return tuple(literal(argument) for argument in arguments) if arguments else None


def _called(node: ast.expr, name: str) -> list[ast.expr] | None:
    """Return the arguments of a call of this name."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    return None if node.func.id != name or node.keywords else node.args


def _comment(code: str) -> str | None:
    """Return the only comment, which follows the call."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, *BROKEN):
        return None
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    return comments[0].string if len(comments) == 1 and comments[0].line.startswith("print(") else None
