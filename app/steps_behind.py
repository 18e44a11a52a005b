"""Which steps stand behind a row of a metric, and which of them is listed first.

Most metrics say it of every row. Those whose rows are one number split or counted in several ways are made of all
chosen steps: of times the slowest steps are the ones to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decoding.metrics import METRICS, Condition, Result
from decoding.metrics.times import PHASES
from decoding.types import JSON

_TIME = "Time"  # the group of metrics that are made of times
_TOTAL = "total_ms"
_FIRST = "to the first token"  # as a row of the latencies is called
_PHASE_OF = {  # by the names of rows
    **{phase: phase for phase in PHASES},
    "drafting": "draft",
    "with the time for drafting": "draft",
    "verifying more rows than one": "forward",
    "and for verifying more rows than one": "forward",
    "more time outside of passes": "other",
}


@dataclass(frozen=True, slots=True)
class Behind:
    """The conditions of the steps behind a row, and the column of steps by which the largest come first."""

    conditions: Sequence[Condition] = ()
    largest: str = ""
    whole: bool = False  # the row's number is made of all chosen steps


def behind(key: str, result: Result, row: int) -> Behind:
    """The steps behind a row of a metric's result."""
    if result["where"]:
        return Behind(result["where"][row])
    if key not in METRICS or METRICS[key].group != _TIME:
        return Behind(whole=True)
    name: JSON = result["rows"][row][0]
    conditions: list[Condition] = [("steps", "step", "=" if name == _FIRST else ">", 0)]
    return Behind(conditions, f"{_PHASE_OF[name]}_ms" if name in _PHASE_OF else _TOTAL, whole=True)
