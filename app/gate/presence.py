"""Which tabs are there: a tab reads what its runs tell through a stream, so one without is on its way, or has left."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

CLIENT = ContextVar("client", default="")  # whose call is being answered
_FORGOTTEN = 60.0  # seconds


@dataclass(slots=True)
class _Tab:
    client: str = ""
    streams: int = 0
    seen: float = 0.0


class Presence:
    """Written by the server's loop, read by runs in their threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tabs: dict[str, _Tab] = {}

    def __len__(self) -> int:
        return len(self._tabs)

    def expect(self, session: str, client: str) -> None:
        """A client's tab has asked for something: it has from now on to come and read it."""
        tab = self._known(session)
        tab.client, tab.seen = client, self._clock()

    def client(self, session: str) -> str:
        """Whose a tab is."""
        tab = self._tabs.get(session)
        return "" if tab is None else tab.client

    @contextlib.contextmanager
    def reading(self, session: str) -> Iterator[None]:
        """A tab reads."""
        tab = self._known(session)
        tab.streams += 1
        try:
            yield
        finally:
            tab.streams -= 1
            tab.seen = self._clock()

    def knows(self, session: str) -> bool:
        """Whether a tab was here lately."""
        return session in self._tabs

    def away(self, session: str) -> float:
        """For how many seconds a tab has not been reading."""
        tab = self._tabs.get(session)
        if tab is None:
            return math.inf
        return 0.0 if tab.streams else self._clock() - tab.seen

    def sweep(self) -> None:
        """Forget tabs that left long ago."""
        for session in [name for name in self._tabs if self.away(name) > _FORGOTTEN]:
            del self._tabs[session]

    def _known(self, session: str) -> _Tab:
        return self._tabs.setdefault(session, _Tab(seen=self._clock()))
