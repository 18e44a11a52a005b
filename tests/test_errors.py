"""One tree of errors: who catches SpecscopeError has caught all that is said to a user."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

from decoding import errors
from decoding.errors import OptionError, ParamError, SpecscopeError
from tests import ROOT

PACKAGES = ("decoding", "analysis", "lab", "cli", "viz", "app")
SOURCES = sorted(path for part in PACKAGES for path in ROOT.glob(f"{part}/**/*.py"))

# No user meets these: what raises them is what catches them, or a test.
INTERNAL = {
    "RefusedError": "the evaluator of pocket's Python answers calls an answer wrong with it",
    "JoinError": "the page's own scripts cannot be joined: the tests join them all",
    "UnreadError": "a landscape asks the target for a verdict again once it has read the guess",
}


def module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def defined() -> dict[str, type[BaseException]]:
    """Return all classes of errors in the packages, by name."""
    classes: dict[str, type[BaseException]] = {}
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(r"(Error|Exception)\b[^()]*\):", text) else ():
            if isinstance(node, ast.ClassDef) and any(
                re.search(r"(Error|Exception)$", ast.unparse(base)) for base in node.bases
            ):
                assert node.name not in classes, f"{node.name} is defined twice"
                classes[node.name] = getattr(importlib.import_module(module(path)), node.name)
    return classes


def public() -> dict[str, type[BaseException]]:
    """Return the classes that a user may meet."""
    return {name: kind for name, kind in defined().items() if name[0] != "_" and name not in INTERNAL}


def test_every_error_is_in_the_tree() -> None:
    """An error outside it becomes "the run failed on this machine", or a traceback, wherever it is not expected."""
    assert len(public()) > 20
    assert not [name for name, kind in public().items() if not issubclass(kind, SpecscopeError)]
    assert not [name for name, kind in public().items() if not issubclass(kind, ValueError)], "scripts catch it as one"


def test_what_is_internal_exists_and_stays_out_of_the_tree() -> None:
    """A stale exemption would let the next error of that name pass."""
    for name in INTERNAL:
        assert not issubclass(defined()[name], SpecscopeError)
    for name, kind in defined().items():
        assert name[0] != "_" or not issubclass(kind, SpecscopeError), f"{name} is private, but said to users"


def test_the_docstring_draws_the_tree_as_it_is() -> None:
    """The drawing is the only place where all of them can be seen."""
    drawn, above = {}, list[str]()
    for line in inspect.getdoc(errors).splitlines():  # type: ignore[union-attr]  # it has one
        if parsed := re.match(r"((?:[│ ]   )*)(?:[├└]── )?([A-Z]\w+Error)\b", line):
            depth = len(parsed[1]) // 4 + ("──" in line)
            drawn[parsed[2]] = above[depth - 1] if depth else "ValueError"
            above[depth:] = [parsed[2]]
    assert drawn == {name: kind.__bases__[0].__name__ for name, kind in public().items()}


BARE = {"ValueError", "TypeError", "RuntimeError", "Exception"}


def raised_by(function: ast.AST) -> set[str]:
    """Return what a function raises, by the names of the classes."""
    raised = (node.exc for node in ast.walk(function) if isinstance(node, ast.Raise))
    return {ast.unparse(error.func) for error in raised if isinstance(error, ast.Call)}


def test_nothing_raises_a_bare_error() -> None:
    """A plain ValueError is a bug's; a user's mistake has a class of its own."""
    allowed = {
        "check_of",  # of a control: the mistake of a page's author, found when the page is built
        "_constant",  # the JSON reader's hook: the caller makes the sentence
        "draw_batch",  # of training rows: a recipe of ours that cannot work
        "_reader",  # of a panel's type: the mistake of a method's author, found by their first test
    }
    raises_one = re.compile(rf"raise ({'|'.join(BARE)})\b")
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        if path.parts[-3:-1] != ("pocket", "language") and raises_one.search(text):
            for function in ast.walk(ast.parse(text)):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name not in allowed:
                    assert not raised_by(function) & BARE, f"{module(path)}.{function.name}"


def test_an_option_error_is_a_type_error_too() -> None:
    """Python raises that for an unknown keyword, and scripts may expect it."""
    assert issubclass(OptionError, TypeError) and issubclass(OptionError, ParamError)
