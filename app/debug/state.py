"""The state of the Debug page, as its address describes it. An address is untrusted input.

screen=debug   folder=ID   f.NAME=VALUE of a filter (analysis/store/query.py)   sql=QUERY in place of filters
against=ID of a folder to compare with, b.method, b.setting: its own   chart=KEY of the metric that is looked at
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

from analysis.store.allowed import check_text
from analysis.store.query import Filter
from decoding.errors import ParamError

from ..left_out import left_out, unknown_fields
from ..server.limits import LIMITS
from ..store.trace_store import ID
from .cards import CARDS

EVERY = "*"  # in the place of a method: all of them
COMPARED, QUESTIONS = "compared", "questions"  # charts beside the metrics: how two selections differ, and questions do
_FILTER = "f."
_FIELDS = frozenset(("screen", "folder", "sql", "against", "b.method", "b.setting", "chart"))
_MOST_FIELDS = 64
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class DebugState:
    """The folders, filters or query, and chart; `problems` are sentences on what was invalid in the address."""

    folder: str = ""
    filters: Filter = field(default_factory=Filter)
    every_method: bool = False  # no method was chosen on purpose
    sql: str = ""  # in place of the filters
    against: str = ""
    against_method: str = ""
    against_setting: str = ""
    chart: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def parse(cls, query: object) -> DebugState:
        """Parse the query of an address; invalid fields are left out."""
        if not isinstance(query, str) or len(query) > LIMITS.address_bytes:
            return cls(problems=("the address is too long, so it was ignored",))
        try:
            given = dict(parse_qsl(query.removeprefix("?"), max_num_fields=_MOST_FIELDS))
        except ValueError:
            return cls(problems=("the address has too many fields, so it was ignored",))
        problems = list[str]()

        def take(key: str, check: Callable[[str], _Value], default: _Value) -> _Value:
            try:
                return check(given[key]) if key in given else default
            except ParamError as error:  # a filter's names it, and was rather typed into the form
                problems.append(str(error) if key.startswith(_FILTER) else left_out([key], error))
                return default

        problems += unknown_fields(given, lambda key: key in _FIELDS or key.startswith(_FILTER))
        filters, every, sql = dict[str, Any](), given.get("f.method") == EVERY, take("sql", check_text, "")
        filtering = [key for key in given if key.startswith(_FILTER)]
        if sql and filtering:
            problems.append(left_out(filtering, "the SQL query takes the place of filters"))
            filtering, every = [], False
        for key in filtering:
            name = key.removeprefix(_FILTER)
            if not (name == "method" and every):
                filters |= take(key, partial(_checked_filter, name), dict[str, Any]())
        if sql := take("sql", check_text, ""):
            filters, every = {}, False
            given = {key: value for key, value in given.items() if not key.startswith("b.")}
        return cls(
            folder=take("folder", _folder, ""),
            filters=Filter.parse(filters),
            every_method=every,
            sql=sql,
            against=take("against", _folder, ""),
            against_method=take("b.method", _name, ""),
            against_setting=take("b.setting", _name, ""),
            chart=take("chart", _chart, ""),
            problems=tuple(problems),
        )

    def address(self) -> str:
        """Return the query that `parse` reads."""
        filters = {f"{_FILTER}{name}": value for name, value in asdict(self.filters).items() if value is not None}
        if self.every_method and "f.method" not in filters:
            filters["f.method"] = EVERY
        fields: dict[str, Any] = {"screen": "debug", "folder": self.folder}
        fields |= {"sql": self.sql} if self.sql else filters
        fields |= {"against": self.against, "b.method": self.against_method, "b.setting": self.against_setting}
        fields["chart"] = self.chart
        return urlencode({key: value for key, value in fields.items() if value != ""})

    def settled(
        self, folder: str, methods: Sequence[tuple[str, str]], others: Sequence[tuple[str, str]] = ()
    ) -> DebugState:
        """Return the same state with a folder, and with one method and setting if none was chosen.

        `methods` are the folder's, the most telling first; mixed numbers would be nobody's. `others` are those of the
        folder to compare with: the same method in another folder, another one in the same.
        """
        chosen = self.sql or self.every_method or self.filters.method is not None or len(methods) < 2
        filters = self.filters if chosen else replace(self.filters, method=methods[0][0], setting=methods[0][1])
        state = replace(self, folder=folder, filters=filters)
        if not self.against or self.against_method or self.sql:
            return state
        looked = (filters.method or "", filters.setting or "")
        if self.against == folder:
            other = next((pair for pair in methods if pair != looked), ("", ""))
        elif filters.method is None or len(others) < 2:
            other = ("", "")
        else:
            other = min(others, key=lambda pair: (pair != looked, pair[0] != looked[0]))
        return replace(state, against_method=other[0], against_setting=other[1])

    def shown(self) -> dict[str, Any]:
        """Return the filters that are set, by name."""
        return {name: value for name, value in asdict(self.filters).items() if value is not None}

    @property
    def query(self) -> str:
        """The SQL of the first selection."""
        return self.sql or self.filters.sql()

    @property
    def against_query(self) -> str:
        """The SQL of the second one: the same filters, with its own method and setting."""
        if self.sql:
            return self.sql
        method, setting = self.against_choice
        return replace(self.filters, method=method or None, setting=setting or None).sql()

    @property
    def against_choice(self) -> tuple[str, str]:
        """The second selection's method and setting; "" for all."""
        return ("" if self.against_method == EVERY else self.against_method), self.against_setting


def _checked_filter(name: str, value: str) -> dict[str, Any]:
    Filter.parse({name: value})
    return {name: value}


def _folder(text: str) -> str:
    if not ID.fullmatch(text):
        raise ParamError("a run folder's id consists of up to 64 letters, digits, dashes and underscores")
    return text


def _name(text: str) -> str:
    if len(text) > 200 or "\0" in text:
        raise ParamError("a method's or setting's name has at most 200 characters")
    return text


def _chart(text: str) -> str:
    if text not in CARDS and text not in (COMPARED, QUESTIONS):
        raise ParamError(f"there is no chart {text[:40]!r}")
    return text
