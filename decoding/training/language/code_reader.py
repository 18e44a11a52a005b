"""Takes an answer of the kind "code" apart: what it says before and after the code, and the code as a tree."""

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
    comments: tuple[tuple[str, bool, bool], ...]  # the text, whether it has a line of its own, whether it is indented


def parses(answer: str) -> bool:
    """Whether the answer holds Python that can be parsed, with a function in it."""
    parts = _split(answer)
    tree = _tree(parts[1]) if parts else None
    return tree is not None and any(isinstance(node, ast.FunctionDef) for node in tree.body)


def take_apart(answer: str) -> Code | None:
    """The answer's parts, if it is one function with a docstring and one printed call of it."""
    parts = _split(answer)
    tree = _tree(parts[1]) if parts else None
    if not parts or not tree or len(tree.body) not in (2, 3) or not isinstance(tree.body[0], ast.FunctionDef):
        return None
    function = tree.body[0]
    doc = ast.get_docstring(function, clean=False)
    arguments = _printed(tree.body[1:], function.name)
    comments = _comments(parts[1])
    if doc is None or not doc[:1].isupper() or arguments is None or comments is None or not _tidy(function):
        return None
    return Code(parts[0], parts[2], function, doc[:1].lower() + doc[1:], arguments, comments)


def _split(answer: str) -> tuple[str, str, str] | None:
    """What stands before the code, the code from its "def" to its last "print", and what stands after."""
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
    """Whether nothing stands after a return, and no statement but the docstring is a mere value."""
    for node in ast.walk(function):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            statements = block if isinstance(block, list) else []
            if any(isinstance(statement, ast.Return) for statement in statements[:-1]):
                return False
            for statement in statements:
                mere = isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call)
                if mere and statement is not function.body[0]:
                    return False
    return not (function.decorator_list or getattr(function, "type_params", None))


def _printed(body: list[ast.stmt], function: str) -> tuple[Any, ...] | None:
    """The arguments of the one call, which is printed; an argument or the result may have a name of its own."""
    named: dict[str, ast.expr] = {}
    for statement in body[:-1]:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        if not isinstance(statement.targets[0], ast.Name) or statement.targets[0].id in (function, "print"):
            return None
        named[statement.targets[0].id] = statement.value
    shown = body[-1].value if isinstance(body[-1], ast.Expr) else None
    inner = _called(shown, "print", named)
    arguments = _called(inner[0], function, named) if inner and len(inner) == 1 else None
    return tuple(literal(argument) for argument in arguments) if arguments and not named else None


def _called(node: ast.expr | None, name: str, named: dict[str, ast.expr]) -> list[ast.expr] | None:
    """A call's arguments, where names of the module stand for their values; each name may be used once."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    if node.func.id != name or node.keywords:
        return None
    return [named.pop(arg.id) if isinstance(arg, ast.Name) and arg.id in named else arg for arg in node.args]


def _comments(code: str) -> tuple[tuple[str, bool, bool], ...] | None:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, *BROKEN):
        return None
    found = [token for token in tokens if token.type == tokenize.COMMENT]
    return tuple((token.string, not token.line[: token.start[1]].strip(), token.line[0] == " ") for token in found)
