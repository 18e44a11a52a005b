"""Checks that a query is one harmless SELECT.

DuckDB's own parser reads the text, and its syntax tree is compared with an allow-list: the tables by their names,
expressions, and functions that neither read settings nor make large values. Every refusal is a ParamError of one
sentence.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import duckdb

from decoding.errors import ParamError

from .query_size import check_size
from .sandbox import open_sandbox, refusal

CHARACTERS = 4_000  # of a query
_BRACKETS = 64  # open at once: the parser and the check go down a level for each

_NODES = {"SELECT_NODE", "SET_OPERATION_NODE"}
_SOURCES = {"BASE_TABLE", "SUBQUERY", "JOIN", "EMPTY", "EXPRESSION_LIST"}
_MODIFIERS = {"ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"}
_ORDERS = {"ORDER_DEFAULT", "ASCENDING", "DESCENDING"}
_CLASSES = {
    "BETWEEN", "CASE", "CAST", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "OPERATOR", "STAR",
    "SUBQUERY", "TYPE", "WINDOW",
}  # fmt: skip
_OPERATORS = {"+", "-", "*", "/", "//", "%", "**", "^", "~~", "!~~", "~~*", "!~~*", "~", "!~"}
_SCALARS = {
    "abs", "array_extract", "ceil", "ceiling", "contains", "ends_with", "exp", "floor", "greatest", "ifnull",
    "ilike_escape", "isnan", "least", "len", "length", "like_escape", "list_contains", "list_value", "ln", "log",
    "log10", "log2", "lower", "ltrim", "mod", "not_ilike_escape", "not_like_escape", "nullif", "pow", "power",
    "prefix", "regexp_full_match", "regexp_matches", "round", "row", "rtrim", "sign", "sqrt", "starts_with", "strpos",
    "substr", "substring", "suffix", "trim", "trunc", "upper", "width_bucket",
}  # fmt: skip
_AGGREGATES = {
    "any_value", "approx_count_distinct", "arg_max", "arg_min", "avg", "bool_and", "bool_or", "corr", "count",
    "count_if", "count_star", "first", "kurtosis", "last", "max", "max_by", "mean", "median", "min", "min_by", "mode",
    "quantile_cont", "quantile_disc", "skewness", "stddev", "stddev_pop", "stddev_samp", "sum", "var_pop", "var_samp",
    "variance",
}  # fmt: skip
_WINDOWS = {
    "cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value", "ntile", "percent_rank",
    "rank", "rank_dense", "row_number",
}  # fmt: skip
FUNCTIONS = frozenset(_OPERATORS | _SCALARS | _AGGREGATES | _WINDOWS)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
# Names that are functions without brackets.
_VALUES = re.compile(r"(?:current|session|local)_?(?:\w+)|user|localtime|localtimestamp", re.IGNORECASE)
_PARSER_LOCK = threading.Lock()


def check_query(text: object, tables: Mapping[str, Sequence[str]]) -> None:
    """Check that a query is one harmless SELECT over tables with these columns; raises ParamError if it is not."""
    query = check_text(text)
    with _PARSER_LOCK:
        parser = _parser()
        _check_is_select(parser, query)
        tree = _tree(parser, query)
    _check_tree(tree, frozenset(tables))
    check_size(tree, tables)


def check_text(text: object) -> str:
    """Check what can be checked before parsing, and return the text: its type, length, characters and depth."""
    if not isinstance(text, str):
        raise ParamError("a query must be a text")
    if len(text) > CHARACTERS:
        raise ParamError(f"the query is longer than {CHARACTERS:,} characters: shorten it")
    if "\0" in text or not text.isprintable() and re.search(r"[^\S\n\t ]|[\x01-\x08\x0b-\x1f\x7f]", text):
        raise ParamError("the query holds a control character: remove it")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ParamError("the query holds half a character: remove it")
    depth = 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth > _BRACKETS:
            raise ParamError(f"the query nests brackets deeper than {_BRACKETS} levels: simplify it")
    return text


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    """Open a database that only parses: opening one takes longer than most queries."""
    return open_sandbox({})


def _check_is_select(parser: duckdb.DuckDBPyConnection, text: str) -> None:
    try:
        statements = parser.extract_statements(text)
    except duckdb.Error as error:
        raise refusal(error) from None
    if len(statements) != 1:
        raise ParamError("write one SELECT statement" + (", not several" if statements else ""))
    if statements[0].type != duckdb.StatementType.SELECT:
        raise ParamError("only a SELECT can be run here: it reads the tables runs, steps and nodes")


def _tree(parser: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any]:
    """Return the syntax tree of the query, as DuckDB writes it."""
    try:
        written = parser.execute("SELECT json_serialize_sql(?)", [text]).fetchall()[0][0]
        parsed = json.loads(written)
    except (duckdb.Error, ValueError, RecursionError) as error:
        raise refusal(error) from None
    if parsed.get("error"):
        raise refusal(str(parsed.get("error_message", "")))
    (statement,) = parsed["statements"]
    node: dict[str, Any] = statement["node"]
    return node


def _check_tree(node: dict[str, Any], tables: frozenset[str]) -> None:
    """Check a statement. WITH is only allowed at its beginning, where every name is in the scope of what follows."""
    names = set(tables)
    for entry in node["cte_map"]["map"]:
        name, value = entry["key"], entry["value"]
        if not _NAME.fullmatch(name):
            raise ParamError(f"WITH gives a table the name {name[:40]!r}: use letters, digits and underscores")
        _check(value["query_node"], frozenset(names))
        if value.get("aliases"):
            _check(value["aliases"], frozenset(names))
        names.add(name.lower())
    _check({**node, "cte_map": {"map": []}}, frozenset(names))


def _check(part: Any, tables: frozenset[str]) -> None:
    """Check a part of the tree, and all that is in it."""
    waiting = [part]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, dict):
            _check_part(each, tables)
            waiting.extend(each.values())


def _check_part(part: dict[str, Any], tables: frozenset[str]) -> None:
    kind, what = part.get("class"), part.get("type")
    if kind is not None:
        if kind not in _CLASSES:
            raise ParamError(f"a query here cannot use {_words(what or kind)}")
        if kind in ("FUNCTION", "WINDOW"):
            _check_function(part)
        if kind == "COLUMN_REF" and _is_value(part.get("column_names") or []):
            raise ParamError(f"a query here cannot ask for {part['column_names'][0]}")
    elif isinstance(what, str) and what.isupper() and not what.endswith("_TYPE_INFO"):
        if what not in _NODES | _SOURCES | _MODIFIERS | _ORDERS:
            raise ParamError(f"a query here cannot use {_words(what)}")
        if what == "BASE_TABLE":
            _check_table(part, tables)
    if part.get("sample") or part.get("at_clause"):
        raise ParamError("a query here cannot sample a table: it reads all of it")
    if (inner := part.get("cte_map")) and inner.get("map"):
        raise ParamError("WITH is only allowed at the beginning of a query: move it there")


def _check_function(part: dict[str, Any]) -> None:
    path = [*part.get("qualified_name", {}).get("path", ()), part.get("function_name", "")]
    name = str(part.get("function_name", "")).lower()
    if part.get("schema") or part.get("catalog") or any(str(each).lower() != name for each in path if each):
        raise ParamError("a function's name here has no schema in front of it")
    if name not in FUNCTIONS:
        raise ParamError(f"a query here cannot use the function {name[:40]!r}: {_near(name)}")


def _check_table(part: dict[str, Any], tables: frozenset[str]) -> None:
    path = part.get("qualified_name", {}).get("path") or [part.get("table_name", "")]
    name = str(part.get("table_name", ""))
    qualified = len(path) > 1 or part.get("schema_name") or part.get("catalog_name")
    if qualified or name.lower() not in tables or str(path[0]).lower() != name.lower():
        raise ParamError(f"there is no table {name[:40]!r} here: the tables are runs, steps and nodes")


def _is_value(names: list[Any]) -> bool:
    return len(names) == 1 and bool(_VALUES.fullmatch(str(names[0])))


def _near(name: str) -> str:
    alike = sorted(each for each in FUNCTIONS if each[:3] == name[:3] and each.isidentifier())[:3]
    return f"use {' or '.join(alike)}" if alike else "use aggregates, arithmetic, contains, lower or regexp_matches"


def _words(name: str) -> str:
    return name.replace("_", " ").lower()
