"""Tracks which browser tabs (Gradio sessions) have an event stream open, and which client each belongs to."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

CLIENT = ContextVar("client", default="")  # of the server call in progress
_FORGOTTEN = 60.0  # seconds


@dataclass(slots=True)
class _Session:
    client: str = ""
    streams: int = 0
    seen: float = 0.0


class SessionTracker:
    """Written by the event loop, read by the threads of runs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: dict[str, _Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def expect(self, session: str, client: str) -> None:
        """Note that a session joined the queue: from now on it is expected to read its events."""
        tab = self._session(session)
        tab.client, tab.seen = client, self._clock()

    def client(self, session: str) -> str:
        """Return the client that a session belongs to."""
        tab = self._sessions.get(session)
        return "" if tab is None else tab.client

    @contextlib.contextmanager
    def reading(self, session: str) -> Iterator[None]:
        """Note that a session reads its events during the block."""
        tab = self._session(session)
        tab.streams += 1
        try:
            yield
        finally:
            tab.streams -= 1
            tab.seen = self._clock()

    def knows(self, session: str) -> bool:
        """Return True if a session was seen lately."""
        return session in self._sessions

    def away(self, session: str) -> float:
        """Return the seconds since a session last read its events; 0 while it does."""
        tab = self._sessions.get(session)
        if tab is None:
            return math.inf
        return 0.0 if tab.streams else self._clock() - tab.seen

    def sweep(self) -> None:
        """Forget sessions that left long ago."""
        for session in [name for name in self._sessions if self.away(name) > _FORGOTTEN]:
            del self._sessions[session]

    def _session(self, session: str) -> _Session:
        return self._sessions.setdefault(session, _Session(seen=self._clock()))
