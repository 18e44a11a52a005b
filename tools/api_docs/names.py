"""Write the public names of a package: signatures, docstrings, and the commented fields of plain data."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import io
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, is_typeddict

import decoding
import viz
from decoding.params import Params

from ..markdown import code, prose, table
from .methods import settings

_PUBLIC = {*decoding.__all__, *viz.__all__}
_LONGEST = 100  # characters of a signature on one line
_INNER = {"Run", "Chat.borrow", "Chat.give_back"}  # what only the engine calls: a constructor, and methods


def section(title: str, package: ModuleType) -> str:
    """Write every name of a package's `__all__`, in its order, errors last."""
    public = {name: getattr(package, name) for name in package.__all__}
    errors = [name for name, value in public.items() if inspect.isclass(value) and issubclass(value, Exception)]
    parts = [f"## {title}\n\n", *(_entry(name, value) for name, value in public.items() if name not in errors)]
    if errors:
        parts.append(_errors(public[errors[0]]))
    return "".join(parts)


def _errors(one: type[Exception]) -> str:
    """Quote the docstring of the errors' module, a tree of them."""
    return f"### Errors\n\n```text\n{inspect.getdoc(inspect.getmodule(one))}\n```\n\n"


def _entry(name: str, value: Any) -> str:
    head = f"### `{name}`\n\n"
    if isinstance(value, dict):
        rows = [(code(key), getattr(each, "label", "")) for key, each in value.items()]
        return head + "A dictionary by name.\n\n" + table(("key", "label"), rows)
    if not inspect.isclass(value):
        return head + _block(_signature(name, value)) + prose(inspect.getdoc(value) or "")
    if issubclass(value, Params) and value is not Params:
        return head + prose(inspect.getdoc(value) or "") + settings(value) + _members(value)
    fields = _fields(value)
    built = "" if name in _INNER or (fields and not inspect.isabstract(value)) else _constructor(name, value)
    return head + built + prose(inspect.getdoc(value) or "") + fields + _members(value)


def _constructor(name: str, kind: type) -> str:
    written = any("__init__" in vars(each) for each in _with_bases(kind))
    return _block(_signature(name, inspect.getattr_static(kind, "__init__"), bound=True)) if written else ""


def _block(text: str) -> str:
    return f"```python\n{text}\n```\n\n"


def _fields(kind: type) -> str:
    """List the fields of a dataclass, a TypedDict, an enumeration or an abstract class."""
    plain = dataclasses.is_dataclass(kind) or is_typeddict(kind)
    if not (plain or issubclass(kind, enum.Enum) or inspect.isabstract(kind)):
        return ""
    heads = ("member", "value", "") if issubclass(kind, enum.Enum) else ("field", "type", "default", "")
    return table(heads, [row for each in _with_bases(kind) for row in _rows(each)])


def _with_bases(kind: type) -> list[type]:
    """List the class after those of its bases that are ours and have no entry of their own."""
    package = kind.__module__.split(".")[0]
    bases = [each for each in kind.__mro__[1:] if each.__module__.split(".")[0] == package]
    return [*(each for each in reversed(bases) if each.__name__ not in _PUBLIC), kind]


def _rows(kind: type) -> Iterator[tuple[str, ...]]:
    source = textwrap.dedent(inspect.getsource(kind))
    comments = _comments(source)
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target)[0] != "_":
            comment = _comment(comments, node.lineno, node.end_lineno or node.lineno)
            default = "" if node.value is None else code(_default(node.value))
            yield code(ast.unparse(node.target)), code(ast.unparse(node.annotation)), default, comment
        elif isinstance(node, ast.Assign) and issubclass(kind, enum.Enum):
            comment = _comment(comments, node.lineno, node.end_lineno or node.lineno)
            yield code(ast.unparse(node.targets[0])), code(ast.unparse(node.value)), comment


def _default(value: ast.expr) -> str:
    """Write a default as in the code; for `field(...)` only its value."""
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field"):
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        if "default" in given:
            return ast.unparse(given["default"])
        made = given.get("default_factory")
        return "" if made is None else "a new one" if isinstance(made, ast.Lambda) else f"{ast.unparse(made)}()"
    return ast.unparse(value)


def _comments(source: str) -> dict[int, tuple[str, bool]]:
    """Map each line to its comment, and whether the comment is alone on it."""
    comments = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("# "), not token.line[: token.start[1]].strip()
    return comments


def _comment(comments: dict[int, tuple[str, bool]], first: int, last: int) -> str:
    """Return the comment after a field, or the one in the lines right above it."""
    after = [comments[line][0] for line in range(first, last + 1) if line in comments]
    above: list[str] = []
    line = first - 1
    while line in comments and comments[line][1]:
        above.insert(0, comments[line][0])
        line -= 1
    return " ".join(after or above)


def _members(kind: type) -> str:
    """List the public methods and properties, with their docstrings."""
    lines = []
    for name, member in {name: member for each in _with_bases(kind) for name, member in vars(each).items()}.items():
        documented = _function(member)
        if name[0] == "_" or documented is None or f"{kind.__name__}.{name}" in _INNER:
            continue
        function, shape = documented
        docstring = " ".join((inspect.getdoc(function) or "").split())
        lines.append(f"- {code(shape(name))}: {docstring}\n")
    return "".join(lines) + "\n" if lines else ""


def _function(member: Any) -> tuple[Any, Callable[[str], str]] | None:
    """Return a member's documented function, and its heading; None if it is not a method."""
    if isinstance(member, property) and member.fget is not None:
        returned = inspect.signature(member.fget).return_annotation
        return member.fget, lambda name: f"{name} -> {returned}"
    if isinstance(member, classmethod):
        return member.__func__, lambda name: _signature(name, member.__func__, bound=True, wrap=False)
    if inspect.isfunction(member):
        return member, lambda name: _signature(name, member, bound=True, wrap=False)
    return None


def _signature(name: str, function: Any, *, bound: bool = False, wrap: bool = True) -> str:
    """Write a signature without quotes around types and without `self`, on several lines if it is long."""
    shape = inspect.signature(function)
    given = list(shape.parameters.values())[bound:]
    pieces: list[str] = []
    for number, one in enumerate(given):
        if one.kind is one.KEYWORD_ONLY and (not number or given[number - 1].kind is one.POSITIONAL_OR_KEYWORD):
            pieces.append("*")
        star = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        kind = "" if one.annotation is one.empty else f": {one.annotation}"
        pieces.append(f"{star}{one.name}{kind}{_value(one.default)}")
        if one.kind is one.POSITIONAL_ONLY and (number + 1 == len(given) or given[number + 1].kind is not one.kind):
            pieces.append("/")
    back = "" if shape.return_annotation in (shape.empty, "None") else f" -> {shape.return_annotation}"
    flat = f"{name}({', '.join(pieces)}){back}"
    if not wrap or len(flat) <= _LONGEST:
        return flat
    return f"{name}(\n" + "".join(f"    {piece},\n" for piece in pieces) + f"){back}"


def _value(default: Any) -> str:
    if default is inspect.Parameter.empty:
        return ""
    text = f"{type(default).__name__}.{default.name}" if isinstance(default, enum.Enum) else repr(default)
    return f" = {text}" if len(text) <= 40 and " at 0x" not in text else " = ..."
