"""The processes that run visitors' queries: they stay warm between queries, and start with the first."""

from __future__ import annotations

import threading

from analysis.store.query import ChosenSteps, Shown
from analysis.store.query_process import QueryProcess
from analysis.store.shared_tables import SharedTables

from ..server.limits import LIMITS


class QueryWorkers:
    """Keeps as many processes as have ever answered at once, which QueryPool limits. Thread-safe."""

    def __init__(self) -> None:
        self._idle, self._lock = list[QueryProcess](), threading.Lock()

    def start(self) -> None:
        """Have a process ready: starting one takes a second, in which its first folder can be read."""
        with self._lock:
            if not self._idle:
                self._idle.append(QueryProcess(LIMITS.query_memory))

    def answer(self, tables: SharedTables, query: str) -> ChosenSteps | Shown:
        """Return a query's answer; raises ParamError if it cannot be run, or takes too much."""
        worker = self._take()
        try:
            return worker.answer(tables, query)
        finally:
            if not worker.is_running:  # the next one starts now, so that no visitor waits for it
                worker = QueryProcess(LIMITS.query_memory)
            with self._lock:
                self._idle.append(worker)

    def _take(self) -> QueryProcess:
        with self._lock:
            while self._idle:
                if (worker := self._idle.pop()).is_running:
                    return worker
        return QueryProcess(LIMITS.query_memory)
