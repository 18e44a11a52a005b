"""Connections that cost little: not too many, none that says nothing, none that takes for ever to ask."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ..limits import LIMITS

_ROOM = 200  # file descriptors for everything else


def raise_file_limit() -> int:
    """Allow as many open files as the system lets this process have; how many connections fit."""
    try:
        import resource
    except ImportError:  # not on Windows, which has no such limit
        return LIMITS.connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = LIMITS.connections + _ROOM
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            reach = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (reach, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return LIMITS.connections if soft == resource.RLIM_INFINITY else max(16, min(LIMITS.connections, soft - _ROOM))


class Doorman:
    """Counts the connections of each address."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._open = Counter[str]()

    def enter(self, address: str) -> bool:
        """Whether one more fits; if so it is counted."""
        if self._open.total() >= self._most or self._open[address] >= self._each:
            return False
        self._open[address] += 1
        return True

    def leave(self, address: str) -> None:
        """One less."""
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]


class Connection(H11Protocol):
    """uvicorn's connection with a doorman, and with so much time for the head of a request."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        doorman: Doorman,
        seconds: float,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._doorman, self._seconds = doorman, seconds
        self._address = ""
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Keep it, or end it at once."""
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else "unknown"
        super().connection_made(transport)
        if self._doorman.enter(address):
            self._address = address
            self._watch()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        if self._address:
            self._doorman.leave(self._address)
            self._address = ""
        self._unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """More of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """The next request may come."""
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """Between the first byte of a request's head and its last no more than some seconds may pass."""
        asking = self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None
        if not asking:
            self._unwatch()
        elif self._late is None:
            self._late = self.loop.call_later(self._seconds, self.transport.abort)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
