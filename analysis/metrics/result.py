"""The form of every metric's result: a number, a sentence and rows, ready for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import numpy as np

from decoding.errors import SpecscopeError
from decoding.types import JSON

# One of the conditions that select a row's steps or nodes, as (table, column, sign, value). The signs are
# "=", "<", "<=", ">", ">=", and of None "is" and "is not".
Condition = tuple[str, str, str, JSON]
# No column: a guess after the accepted path, so that no guess for its position was accepted.
LOST: Condition = ("nodes", "lost", "=", True)


class MetricResult(TypedDict):
    """A metric's value for a selection; only `reason` is filled in where the record cannot answer."""

    reason: str | None  # why there are no numbers
    value: float | None  # the number to show alone
    low: float | None  # its interval of 95%
    high: float | None
    unit: str
    sentence: str
    columns: list[str]
    rows: list[list[JSON]]
    where: list[list[Condition]]  # one entry a row, or none at all
    advice: NotRequired[dict[str, JSON]]  # settings of the method that would be faster
    slowest: list[str]  # of rows that are made of all these steps' times: the column by which to list the slowest first


class UnknownError(SpecscopeError):
    """The record lacks what a metric needs; the message is a sentence without a full stop."""


def result(
    sentence: str,
    *,
    value: float | None = None,
    interval: Sequence[float | None] = (None, None),
    unit: str = "",
    columns: Sequence[str] = (),
    rows: Sequence[Sequence[JSON]] = (),
    where: Sequence[Sequence[Condition]] = (),
    slowest: Sequence[str] = (),
    advice: Mapping[str, JSON] | None = None,
) -> MetricResult:
    """Make a result of plain numbers: NaN and numpy's types do not reach JSON."""
    made = MetricResult(
        reason=None,
        value=json_number(value),
        low=json_number(interval[0]),
        high=json_number(interval[1]),
        unit=unit,
        sentence=sentence,
        columns=list(columns),
        rows=[[json_number(cell) for cell in row] for row in rows],
        where=[[(table, column, sign, json_number(bound)) for table, column, sign, bound in row] for row in where],
        slowest=list(slowest),
    )
    if advice is not None:
        made["advice"] = {name: json_number(each) for name, each in advice.items()}
    return made


def unknown(reason: str) -> MetricResult:
    """Make the result of a metric that the record cannot answer."""
    return result("") | {"reason": reason}


def json_number(value: JSON) -> JSON:
    """Return a value that JSON can hold: None if there is no number."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def percent(value: float) -> str:
    """Format a share in per cent."""
    return f"{100 * value:.0f}%" if value >= 0.1 or value == 0 else f"{100 * value:.1f}%"


def listed(words: Sequence[str]) -> str:
    """Join words as a sentence lists them."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
