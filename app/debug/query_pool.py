"""Limits the queries that run at once, and to one per client: each may take two threads for seconds."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from decoding.errors import TraceError

from ..server.limits import LIMITS
from ..server.middleware.session_tracker import CLIENT

_BUSY = "the server answers other queries at the moment: try again in a few seconds"


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """A query that waits."""

    client: str


class QueryPool:
    """A bounded number of slots. The next free one goes to the client whose last query is longest ago."""

    def __init__(self, places: int = LIMITS.queries, each: int = LIMITS.queries_each) -> None:
        self._places, self._each = places, each
        self._running: Counter[str] = Counter()
        self._waiting = list[_Turn]()  # in the order in which they come
        self._changed = threading.Condition()

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a slot during the block; raises TraceError if none becomes free in time."""
        turn = _Turn(CLIENT.get())
        with self._changed:
            self._waiting.append(turn)
            has_come = self._changed.wait_for(lambda: self._is_next(turn), LIMITS.query_patience)
            self._waiting.remove(turn)
            self._changed.notify_all()  # the turn after it may have come too
            if not has_come:
                raise TraceError(_BUSY)
            self._running[turn.client] += 1
        try:
            yield
        finally:
            with self._changed:
                self._running[turn.client] -= 1
                self._running += Counter()  # without those that have none
                self._waiting.sort(key=lambda each: each.client == turn.client)  # its further turns come last
                self._changed.notify_all()

    def _is_next(self, turn: _Turn) -> bool:
        allowed = (each for each in self._waiting if self._running[each.client] < self._each)
        return self._running.total() < self._places and next(allowed, None) is turn
