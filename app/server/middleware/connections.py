"""Limits on TCP connections: their number, in total and per address, the time for a request head, and the time and
memory for a client that does not read its response."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from collections import Counter
from collections.abc import Iterator

import h11
from starlette.types import Message
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ..limits import LIMITS

_log = logging.getLogger(__name__)
_ROOM = 200  # file descriptors for everything else
_LAST_SECONDS = 0.3  # for a client to take a piece while the server ends
_PIECE = 64 * 2**10  # bytes of a response that wait in this process for a client; smaller ones cost others a turn each
_UNSENT = 64 * 2**10  # bytes of it that wait in the system
_RESET = struct.pack("ii", 1, 0)  # for SO_LINGER: drop what waits in the system


def pieces(message: Message) -> Iterator[Message]:
    """Split an ASGI message that sends a body, so that each piece waits until the client has taken the one before."""
    body: bytes = message.get("body", b"")
    for begin in range(0, len(body) - _PIECE, _PIECE):
        yield {**message, "body": body[begin : begin + _PIECE], "more_body": True}
    yield {**message, "body": body[max(0, (len(body) - 1) // _PIECE * _PIECE) :]}


def raise_file_limit() -> int:
    """Raise RLIMIT_NOFILE if the system allows it; returns how many connections fit."""
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


class ConnectionLimit:
    """Counts open connections, in total and per address."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._open = Counter[str]()

    def enter(self, address: str) -> bool:
        """Count one more if it fits; returns whether it does."""
        if self._open.total() >= self._most or self._open[address] >= self._each:
            return False
        self._open[address] += 1
        return True

    def leave(self, address: str) -> None:
        """Count one less."""
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]


class Connection(H11Protocol):
    """uvicorn's connection with a limit, and with so many seconds for the head of a request.

    A client has `send_seconds` to take what waits for it in this process, which is a piece of a response. This class
    watches that, since a sender does not wait after the last piece.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limit: ConnectionLimit,
        seconds: float,
        send_seconds: float = LIMITS.send_seconds,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limit, self._seconds, self._send_seconds = limit, seconds, send_seconds
        self._address = ""
        self._timeout: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept or abort."""
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else "unknown"
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # so that the next piece waits until this one is taken
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # not on Windows
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
        if self._limit.enter(address):
            self._address = address
            self._update_timeout()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the slot."""
        if self._address:
            self._limit.leave(self._address)
            self._address = ""
        self._cancel_timeout()
        self._cancel_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the timeout for data that the client has not received."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._send_seconds, self._reset)

    def resume_writing(self) -> None:
        """Stop the timeout: the client has received everything."""
        self._cancel_unread()
        super().resume_writing()

    def shutdown(self) -> None:
        """Give the client only a moment for what is left, since the server ends."""
        self._send_seconds = _LAST_SECONDS
        if self._unread is not None:
            self._cancel_unread()
            self._unread = self.loop.call_later(_LAST_SECONDS, self._reset)
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        """Start or stop the timeout."""
        super().data_received(data)
        self._update_timeout()

    def on_response_complete(self) -> None:
        """Start or stop the timeout for the next request."""
        super().on_response_complete()
        self._update_timeout()

    def _update_timeout(self) -> None:
        """Run the timeout from the first byte of a request head to its last."""
        asking = self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None
        if not asking:
            self._cancel_timeout()
        elif self._timeout is None:
            self._timeout = self.loop.call_later(self._seconds, self.transport.abort)

    def _cancel_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def _reset(self) -> None:
        _log.info("nobody reads the answer to %s %s", self.scope["method"], self.scope["path"])
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    def _cancel_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
