"""Attacks by queries on the Debug page that exceed their limits of time, memory or types."""

from __future__ import annotations

import http.client
import time
from urllib.parse import urlencode

from .attack import Attack

_LATEST = 25.0  # seconds until an answer: eight waiting for others, under six of computing, and a process to start
_LATE = 504


def _doubled(first: str, last: str) -> str:
    """Write a query with twenty-four aliases, each of which uses the one before twice."""
    aliases = ", ".join(f"{last.format(f'a{k}')} AS a{k + 1}" for k in range(24))
    return f"SELECT {first} AS a0, {aliases} FROM nodes"


def _compared(times: int) -> str:
    """Write a query that the parser doubles repeatedly, before it can be checked."""
    text = "run"
    for _ in range(times):
        text = f"CASE {text} WHEN 1 THEN 2 WHEN 3 THEN 4 END"
    return f"SELECT {text} FROM runs"


_QUERIES = (
    _doubled("run", "{0} + {0}"),
    "SELECT " + ",".join(["*"] * 1_900) + " FROM nodes",
    _compared(60),
    "SELECT count(*) FROM nodes a, nodes b, nodes c WHERE a.p + b.p > c.p",
    "SELECT 'infinity'::TIMESTAMP, '290000-01-01'::DATE, '5877642-06-25 (BC)'::DATE, ['inf'::FLOAT], 'a'::BLOB",
    _doubled("row(1, 1)", "row({0}, {0})"),
    "SELECT run, step, NULL::INTEGER[100000][1000] FROM nodes a, steps",
    "SELECT a.text FROM nodes a, nodes b ORDER BY a.p * b.q",
    "SELECT count(*) FROM " + " NATURAL JOIN ".join(f"nodes n{k}" for k in range(100)),
    _compared(12),
    "SELECT count(*) FROM nodes GROUP BY CUBE (run, step, depth, parent, role, text, p, q, accepted)",
    "SELECT greatest(" + ", ".join(["*COLUMNS(*)"] * 200) + ") FROM nodes",
)


def hostile_queries(attack: Attack) -> None:
    """Send queries that never end, grow or return strange values; every third visitor leaves before the answer."""

    def ask(number: int) -> int:
        address, begin = urlencode({"sql": _QUERIES[number % len(_QUERIES)]}), time.monotonic()
        tab = attack.visitor()
        try:
            status = tab.call("debug_open", address, "debug-viewer", 1.0 if number % 3 == 2 else 30.0).status
        except (TimeoutError, http.client.HTTPException):
            return 0
        return status if time.monotonic() - begin < _LATEST else _LATE

    attack.many(60, ask, 4)
