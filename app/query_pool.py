"""Lets few queries run at once, and one of each client: each may take two threads for seconds."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from decoding.errors import TraceError

from .limits import LIMITS
from .middleware.session_tracker import CLIENT

_BUSY = "the server answers other queries at the moment: try again in a few seconds"


class QueryPool:
    """A bounded number of places, shared fairly by a bound for each client."""

    def __init__(self, places: int = LIMITS.queries, each: int = LIMITS.queries_each) -> None:
        self._places, self._each = places, each
        self._running: Counter[str] = Counter()
        self._changed = threading.Condition()

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place for the block; raises TraceError where none becomes free in time."""
        client = CLIENT.get()
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_free(client), LIMITS.query_patience):
                raise TraceError(_BUSY)
            self._running[client] += 1
        try:
            yield
        finally:
            with self._changed:
                self._running[client] -= 1
                self._running += Counter()  # without those that have none
                self._changed.notify_all()

    def _is_free(self, client: str) -> bool:
        return self._running.total() < self._places and self._running[client] < self._each
