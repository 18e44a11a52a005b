"""Evaluates a small function from its tree, without running it: a few node types, a few builtins, hard limits.

Everything else is refused: attributes beyond three string and list methods, imports, definitions, lambdas, names that
the function does not define. Values are numbers, texts, booleans and flat lists, all of limited size.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_STEPS = 10_000
_DEPTH = 40
_LARGEST = 10**9
_LONGEST = 1_000
_ERRORS = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)
_SIGNS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
}
_COMPARED: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_BUILTINS: dict[str, Callable[..., Any]] = {"sum": sum, "max": max, "min": min, "len": len}
_METHODS: dict[type, tuple[str, ...]] = {str: ("upper", "join"), list: ("append",)}


class RefusedError(Exception):
    """The code does something forbidden, fails, or does not end."""


def call(function: ast.FunctionDef, arguments: tuple[Any, ...]) -> Any:
    """Call the function with copies of these arguments."""
    spec = function.args
    extra = spec.posonlyargs or spec.kwonlyargs or spec.vararg or spec.kwarg or spec.defaults or function.decorator_list
    if extra or len(spec.args) != len(arguments):
        raise RefusedError
    values = [list(value) if isinstance(value, list) else value for value in arguments]
    try:
        ended, value = _Machine().block(function.body, dict(zip([arg.arg for arg in spec.args], values, strict=True)))
    except _ERRORS:
        raise RefusedError from None
    if not ended or not isinstance(value, int | str | list):
        raise RefusedError
    return value


def literal(node: ast.expr) -> Any:
    """Evaluate a whole number, a text, or a flat list of them, as written."""
    if isinstance(node, ast.List) and len(node.elts) <= _LONGEST:
        items = [literal(item) for item in node.elts if not isinstance(item, ast.List)]
        if len(items) == len(node.elts):
            return items
    if isinstance(node, ast.Constant) and type(node.value) in (int, str):
        return node.value
    raise RefusedError


_Scope = dict[str, Any]


class _Machine:
    """One evaluation, which counts its steps."""

    def __init__(self) -> None:
        self._steps = 0
        self._depth = 0

    def block(self, body: list[ast.stmt], scope: _Scope) -> tuple[bool, Any]:
        """Run statements; return whether a return was reached, and its value."""
        for statement in body:
            self._charge(1)
            ended, value = self._statement(statement, scope)
            if ended:
                return True, value
        return False, None

    def _charge(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _STEPS:
            raise RefusedError

    def _statement(self, node: ast.stmt, scope: _Scope) -> tuple[bool, Any]:
        if isinstance(node, ast.Return) and node.value:
            return True, self.value(node.value, scope)
        if isinstance(node, ast.Expr):
            self.value(node.value, scope)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assign(node.targets[0], self.value(node.value, scope), scope)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            if not isinstance(scope.get(node.target.id), int | str):
                raise RefusedError
            right = self.value(node.value, scope)
            self._assign(node.target, self._signed(type(node.op), scope[node.target.id], right), scope)
        elif isinstance(node, ast.If):
            return self.block(node.body if self.value(node.test, scope) else node.orelse, scope)
        elif isinstance(node, ast.For) and not node.orelse:
            return self._loop(node, scope)
        else:
            raise RefusedError
        return False, None

    def _loop(self, node: ast.For, scope: _Scope) -> tuple[bool, Any]:
        for item in self._items(node.iter, scope):
            self._assign(node.target, item, scope)
            ended, value = self.block(node.body, scope)
            if ended:
                return True, value
        return False, None

    def _items(self, node: ast.expr, scope: _Scope) -> Iterator[Any]:
        for item in self.value(node, scope):
            self._charge(1)
            yield item

    def _assign(self, target: ast.expr, value: Any, scope: _Scope) -> None:
        if not isinstance(target, ast.Name):
            raise RefusedError
        scope[target.id] = value

    def value(self, node: ast.expr, scope: _Scope) -> Any:
        """Evaluate an expression within the limits."""
        method = _NODES.get(type(node))
        self._depth += 1
        if method is None or self._depth > _DEPTH:
            raise RefusedError
        value = self._bounded(method(self, node, scope))
        self._depth -= 1
        return value

    def _bounded(self, value: Any) -> Any:
        if isinstance(value, list | str):
            self._charge(1 + len(value))
            if len(value) > _LONGEST or (isinstance(value, list) and any(not _scalar(item) for item in value)):
                raise RefusedError
        else:
            self._charge(1)
            if isinstance(value, int) and abs(value) > _LARGEST:
                raise RefusedError
        return value

    def _constant(self, node: ast.Constant, scope: _Scope) -> Any:
        if not _scalar(node.value):
            raise RefusedError
        return node.value

    def _name(self, node: ast.Name, scope: _Scope) -> Any:
        if node.id not in scope:
            raise RefusedError
        return scope[node.id]

    def _list(self, node: ast.List, scope: _Scope) -> list[Any]:
        return [self.value(item, scope) for item in node.elts]

    def _binary(self, node: ast.BinOp, scope: _Scope) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        return self._signed(type(node.op), left, right)

    def _signed(self, sign: type, left: Any, right: Any) -> Any:
        if sign not in _SIGNS or (sign is ast.Mod and not isinstance(left, int)):
            raise RefusedError
        for many, times in ((left, right), (right, left)):
            if sign is ast.Mult and isinstance(many, str | list) and isinstance(times, int):
                self._charge(max(0, len(many) * times))
        return _SIGNS[sign](left, right)

    def _minus(self, node: ast.UnaryOp, scope: _Scope) -> Any:
        if not isinstance(node.op, ast.USub):
            raise RefusedError
        return -self.value(node.operand, scope)

    def _compare(self, node: ast.Compare, scope: _Scope) -> bool:
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARED:
            raise RefusedError
        return _COMPARED[type(node.ops[0])](self.value(node.left, scope), self.value(node.comparators[0], scope))

    def _either(self, node: ast.IfExp, scope: _Scope) -> Any:
        return self.value(node.body if self.value(node.test, scope) else node.orelse, scope)

    def _at(self, node: ast.Subscript, scope: _Scope) -> Any:
        whole = self.value(node.value, scope)
        if not isinstance(whole, list | str):
            raise RefusedError
        if not isinstance(node.slice, ast.Slice):
            return whole[self.value(node.slice, scope)]
        ends = (node.slice.lower, node.slice.upper, node.slice.step)
        return whole[slice(*(None if end is None else self.value(end, scope) for end in ends))]

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, scope: _Scope) -> Any:
        if len(node.generators) != 1 or node.generators[0].is_async:
            raise RefusedError
        source, inner, values = node.generators[0], dict(scope), []
        for item in self._items(source.iter, scope):
            self._assign(source.target, item, inner)
            if all(self.value(test, inner) for test in source.ifs):
                values.append(self.value(node.elt, inner))
        return values if isinstance(node, ast.ListComp) else iter(values)

    def _call(self, node: ast.Call, scope: _Scope) -> Any:
        arguments = [self.value(argument, scope) for argument in node.args]
        if node.keywords:
            raise RefusedError
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func, arguments, scope)
        if not isinstance(node.func, ast.Name) or node.func.id in scope or node.func.id not in _BUILTINS:
            raise RefusedError
        return _BUILTINS[node.func.id](*arguments)

    def _method(self, node: ast.Attribute, arguments: list[Any], scope: _Scope) -> Any:
        thing = self.value(node.value, scope)
        if node.attr not in _METHODS.get(type(thing), ()):
            raise RefusedError
        if node.attr == "append" and not all(_scalar(argument) for argument in arguments):
            raise RefusedError
        if node.attr == "join" and isinstance(arguments[0], Iterable) and not isinstance(arguments[0], Iterator):
            self._charge(len(thing) * len(list(arguments[0])))
        return getattr(thing, node.attr)(*arguments)


def _scalar(value: Any) -> bool:
    return isinstance(value, int | str)


_NODES: dict[type, Callable[[_Machine, Any, _Scope], Any]] = {
    ast.Constant: _Machine._constant,
    ast.Name: _Machine._name,
    ast.List: _Machine._list,
    ast.BinOp: _Machine._binary,
    ast.UnaryOp: _Machine._minus,
    ast.Compare: _Machine._compare,
    ast.IfExp: _Machine._either,
    ast.Subscript: _Machine._at,
    ast.ListComp: _Machine._comprehension,
    ast.GeneratorExp: _Machine._comprehension,
    ast.Call: _Machine._call,
}
