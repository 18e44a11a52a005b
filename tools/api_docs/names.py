"""The names that a package gives away: signatures, docstrings, and the fields of plain data with their comments."""

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

from decoding.params import Params

from .markdown import code, prose, table
from .methods import settings

_LONGEST = 100  # characters of a signature on one line
_INNER = {"Run", "Chat.borrow", "Chat.give_back"}  # what only the engine calls: a constructor, and methods


def section(title: str, package: ModuleType) -> str:
    """Every name of a package's `__all__`, in its order, errors last."""
    found = {name: getattr(package, name) for name in package.__all__}
    errors = [name for name, value in found.items() if inspect.isclass(value) and issubclass(value, Exception)]
    parts = [f"## {title}\n\n", *(_entry(name, value) for name, value in found.items() if name not in errors)]
    if errors:
        parts.append(_errors(found[errors[0]]))
    return "".join(parts)


def _errors(one: type[Exception]) -> str:
    """The module of the errors draws them as a tree."""
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
    return _block(_signature(name, vars(kind)["__init__"], bound=True)) if "__init__" in vars(kind) else ""


def _block(text: str) -> str:
    return f"```python\n{text}\n```\n\n"


def _fields(kind: type) -> str:
    """Of a dataclass, a TypedDict, an enumeration, or an abstract class: what its body annotates or names."""
    plain = dataclasses.is_dataclass(kind) or is_typeddict(kind)
    if not (plain or issubclass(kind, enum.Enum) or inspect.isabstract(kind)):
        return ""
    heads = ("member", "value", "") if issubclass(kind, enum.Enum) else ("field", "type", "default", "")
    return table(heads, _rows(kind))


def _rows(kind: type) -> Iterator[tuple[str, ...]]:
    source = textwrap.dedent(inspect.getsource(kind))
    comments = _comments(source)
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target)[0] != "_":
            said = _comment(comments, node.lineno, node.end_lineno or node.lineno)
            default = "" if node.value is None else code(_default(node.value))
            yield code(ast.unparse(node.target)), code(ast.unparse(node.annotation)), default, said
        elif isinstance(node, ast.Assign) and issubclass(kind, enum.Enum):
            said = _comment(comments, node.lineno, node.end_lineno or node.lineno)
            yield code(ast.unparse(node.targets[0])), code(ast.unparse(node.value)), said


def _default(value: ast.expr) -> str:
    """A default as written; of `field(...)` only what it gives."""
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field"):
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        if "default" in given:
            return ast.unparse(given["default"])
        made = given.get("default_factory")
        return "" if made is None else "a new one" if isinstance(made, ast.Lambda) else f"{ast.unparse(made)}()"
    return ast.unparse(value)


def _comments(source: str) -> dict[int, tuple[str, bool]]:
    """By line: a comment, and whether it has the line to itself."""
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found[token.start[0]] = token.string.lstrip("# "), not token.line[: token.start[1]].strip()
    return found


def _comment(comments: dict[int, tuple[str, bool]], first: int, last: int) -> str:
    """What is said behind a field, or in the lines right above it."""
    behind = [comments[line][0] for line in range(first, last + 1) if line in comments]
    above: list[str] = []
    line = first - 1
    while line in comments and comments[line][1]:
        above.insert(0, comments[line][0])
        line -= 1
    return " ".join(behind or above)


def _members(kind: type) -> str:
    """Public methods and properties that the class itself defines, with the docstrings."""
    lines = []
    for name, member in vars(kind).items():
        documented = _function(member)
        if name[0] == "_" or documented is None or f"{kind.__name__}.{name}" in _INNER:
            continue
        function, shape = documented
        said = " ".join((inspect.getdoc(function) or "").split())
        lines.append(f"- {code(shape(name))}: {said}\n")
    return "".join(lines) + "\n" if lines else ""


def _function(member: Any) -> tuple[Any, Callable[[str], str]] | None:
    """What documents a member, and how it is written down; None where it is no method."""
    if isinstance(member, property) and member.fget is not None:
        returned = inspect.signature(member.fget).return_annotation
        return member.fget, lambda name: f"{name} -> {returned}"
    if isinstance(member, classmethod):
        return member.__func__, lambda name: _signature(name, member.__func__, bound=True, wrap=False)
    if inspect.isfunction(member):
        return member, lambda name: _signature(name, member, bound=True, wrap=False)
    return None


def _signature(name: str, function: Any, *, bound: bool = False, wrap: bool = True) -> str:
    """A signature without quotes around its types; without `self`; on several lines where it is long."""
    shape = inspect.signature(function)
    given = list(shape.parameters.values())[bound:]
    pieces: list[str] = []
    for place, one in enumerate(given):
        if one.kind is one.KEYWORD_ONLY and (not place or given[place - 1].kind is one.POSITIONAL_OR_KEYWORD):
            pieces.append("*")
        star = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        kind = "" if one.annotation is one.empty else f": {one.annotation}"
        pieces.append(f"{star}{one.name}{kind}{_value(one.default)}")
        if one.kind is one.POSITIONAL_ONLY and (place + 1 == len(given) or given[place + 1].kind is not one.kind):
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
