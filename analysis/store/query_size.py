"""Limits how large a query becomes when its stars, aliases and macros are expanded.

DuckDB puts the expression of an alias in the place of each of its uses, and every column in the place of a star, before
the query runs. So `a+a b, b+b c, c+c d, ...` doubles with each alias: sixteen took 18 seconds, twenty took 147 seconds
and 2 GB, and no interrupt reaches DuckDB while it plans. The weights here are upper bounds of what it builds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from decoding.errors import ParamError

_WEIGHT = 4_000  # expressions after expansion: planning takes most of a second, where they come of nested rows
_SOURCES = 32  # tables, subqueries and parts of unions: at 60, joining takes a second to plan
_GROUPING_SETS = 16  # nine columns of CUBE, which are 512 sets, take more than 20 seconds to plan
_QUERIES = ("SELECT_NODE", "SET_OPERATION_NODE")
_UNNAMED = ""
_TOO_LARGE = "the query becomes too large when its stars and aliases are expanded: use fewer of them"
_Columns = list[tuple[str, int]]  # of a table or subquery, in order: their names, and the weights of their expressions
_Scope = dict[str, int]  # the weight of what a name can mean; the largest, where it can mean several things


def check_size(node: Mapping[str, Any], tables: Mapping[str, Sequence[str]]) -> None:
    """Check a statement of allowed parts over tables with these columns; raises ParamError if it is too large."""
    try:
        _Expansion(tables).add_statement(node)
    except RecursionError:
        raise ParamError("the query is nested too deeply: simplify it") from None


class _Expansion:
    """Adds up what a statement expands to."""

    def __init__(self, tables: Mapping[str, Sequence[str]]) -> None:
        self._tables = {name.lower(): [(column, 1) for column in columns] for name, columns in tables.items()}
        self._weight = self._sources = 0

    def add_statement(self, node: Mapping[str, Any]) -> None:
        for entry in node["cte_map"]["map"]:
            columns = self._query(entry["value"]["query_node"], {})
            self._tables[entry["key"].lower()] = _renamed(columns, entry["value"]["aliases"])
        self._query(node, {})

    def _add(self, weight: int) -> int:
        self._weight += weight
        if self._weight > _WEIGHT:
            raise ParamError(_TOO_LARGE)
        return weight

    def _add_source(self) -> None:
        self._sources += 1
        if self._sources > _SOURCES:
            raise ParamError(f"the query reads more than {_SOURCES} tables and subqueries: use fewer of them")

    def _query(self, node: Mapping[str, Any], outer: _Scope) -> _Columns:
        """Add a SELECT, or several that are combined; return the columns of its result."""
        if node["type"] == "SET_OPERATION_NODE":
            parts = [self._query(child, outer) for child in node["children"]]
            self._add(self._weigh(node["modifiers"], _scope(outer, *parts), parts[0]))
            # They are combined by place or by name, so any of the names may have the largest weight.
            heaviest = max((weight for columns in parts for _, weight in columns), default=1)
            return [(name, heaviest) for columns in parts for name, _ in columns]
        if len(node["group_sets"]) > _GROUPING_SETS:
            raise ParamError(f"the query groups in more than {_GROUPING_SETS} ways: use fewer columns in CUBE")
        self._add_source()
        columns = self._source(node["from_table"], outer)
        scope, selected = _scope(outer, columns), _Columns()
        for item in node["select_list"]:
            made = self._item(item, scope, columns)
            selected += made
            scope = _scope(scope, made)  # an alias can be used by all that follows it
        for part in ("where_clause", "group_expressions", "having", "qualify", "modifiers"):
            self._add(self._weigh(node[part], scope, [*columns, *selected]))
        return selected

    def _item(self, item: Mapping[str, Any], scope: _Scope, columns: _Columns) -> _Columns:
        """Add what is selected; return the columns that it makes."""
        if item["class"] == "STAR":
            more = self._weigh([item["replace_list"], item["expr"]], scope, columns)
            made = [(name, weight + more) for name, weight in columns]
            self._add(sum(weight for _, weight in made))
            heaviest = max((weight for _, weight in made), default=1)
            return [*made, *((each["value"], heaviest) for each in item["rename_list"])]
        name = item["alias"] or (item["column_names"][-1] if item["class"] == "COLUMN_REF" else _UNNAMED)
        return [(name, self._add(self._weigh(item, scope, columns)))]

    def _source(self, source: Mapping[str, Any], outer: _Scope) -> _Columns:
        """Add what follows FROM; return its columns."""
        kind = source["type"]
        if kind == "JOIN":
            self._add_source()
            columns = self._source(source["left"], outer)
            columns = columns + self._source(source["right"], _scope(outer, columns))
            self._add(self._weigh(source["condition"], _scope(outer, columns), columns))
            if source["ref_type"] == "NATURAL":
                self._add(len(columns))  # which are compared by their names
            return columns
        if kind == "BASE_TABLE":
            columns = self._tables[source["table_name"].lower()]
        elif kind == "SUBQUERY":
            columns = self._query(source["subquery"]["node"], outer)
        elif kind == "EXPRESSION_LIST":
            weights = [[self._add(self._weigh(value, outer, [])) for value in row] for row in source["values"]]
            columns = [(f"col{place}", max(column)) for place, column in enumerate(zip(*weights, strict=False))]
        else:
            return []
        return _renamed(columns, source.get("column_name_alias", ()))

    def _weigh(self, expression: Any, scope: _Scope, columns: _Columns) -> int:
        """Return how many expressions one, or a list of them, expands to; a star in it copies all of it."""
        heaviest = max((weight for _, weight in columns), default=1)
        total, copies, waiting = 0, 1, [(expression, 1)]
        while waiting:
            part, times = waiting.pop()
            if isinstance(part, list):
                waiting += [(each, times) for each in part]
            elif isinstance(part, dict) and part.get("type") in _QUERIES:
                before = self._weight
                self._query(part, scope)
                total += times * (self._weight - before)
                self._weight = before  # the caller adds it, as a part of the expression
            elif isinstance(part, dict):
                kind = part.get("class")
                if kind == "COLUMN_REF":
                    weights = [scope[name.lower()] for name in part["column_names"] if name.lower() in scope]
                    total += times * max(weights, default=sum(scope.values()))  # by no column's name: a whole row
                elif kind == "STAR":
                    total, copies = total + times * heaviest, max(1, len(columns))
                elif kind is not None:
                    total += times
                if part.get("function_name", "").lower() == "nullif":
                    times *= 2  # a macro, which uses its first argument twice
                waiting += [(each, times) for each in part.values()]
        return total * copies


def _scope(outer: _Scope, *parts: _Columns) -> _Scope:
    """Add the names of columns to those of an outer scope."""
    scope = dict(outer)
    for columns in parts:
        for name, weight in columns:
            scope[name.lower()] = max(weight, scope.get(name.lower(), 1))
    return scope


def _renamed(columns: _Columns, names: Sequence[str]) -> _Columns:
    """Give the first columns other names."""
    return [(name, weight) for name, (_, weight) in zip(names, columns, strict=False)] + columns[len(names) :]
