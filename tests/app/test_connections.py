"""Connections of a small server, with the limits that the page's has."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import uvicorn

from app.middleware.connections import Connection, ConnectionLimit, raise_file_limit

_SECONDS = 0.3


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
def port() -> Iterator[int]:
    kind: Any = partial(Connection, limit=ConnectionLimit(4, 3), seconds=_SECONDS)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(hello, http=kind, ws="none", lifespan="off", log_config=None, timeout_keep_alive=60)
    server = uvicorn.Server(config)
    running = threading.Thread(target=server.run, args=([listener],))
    running.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()[1]
    server.should_exit = True
    running.join(5)


def connect(port: int, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 5, (source, 0))


def closed_after(line: socket.socket) -> float:
    """Seconds until the other side ends it."""
    begin = time.monotonic()
    with line, contextlib.suppress(ConnectionResetError):
        assert line.recv(1) == b""
    return time.monotonic() - begin


def answers(line: socket.socket) -> bool:
    """Whether a request on it is answered."""
    line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    told = b""
    while not told.endswith(b"hello"):
        piece = line.recv(1_000)
        if not piece:
            return False
        told += piece
    return True


@pytest.mark.parametrize("beginning", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: "])
def test_a_request_that_does_not_come_ends_the_connection(port: int, beginning: bytes) -> None:
    """Else it is held for ever; and each letter must not buy more time."""
    with connect(port) as line:
        line.sendall(beginning)
        more = threading.Timer(_SECONDS / 2, line.sendall, [b"a"])
        more.start()
        assert _SECONDS * 0.5 < closed_after(line) < _SECONDS * 5
        more.join()


def test_so_does_the_second_request_of_a_connection(port: int) -> None:
    with connect(port) as line:
        assert answers(line)
        line.sendall(b"GET / HTT")
        assert _SECONDS * 0.5 < closed_after(line) < _SECONDS * 5


def test_a_connection_between_two_requests_is_kept(port: int) -> None:
    """A browser keeps some open for its next request."""
    with connect(port) as line:
        assert answers(line)
        line.settimeout(_SECONDS * 2)
        with pytest.raises(TimeoutError):
            line.recv(1)
        line.settimeout(5)
        assert answers(line)


def test_one_address_cannot_take_all_connections(port: int) -> None:
    held = [connect(port) for _ in range(3)]
    assert closed_after(connect(port)) < _SECONDS / 2
    with connect(port, "127.0.0.2") as other:
        assert answers(other)
        assert closed_after(connect(port, "127.0.0.3")) < _SECONDS / 2  # the server has no more than four
    for line in held:
        closed_after(line)
    with connect(port) as again:
        assert answers(again)


def test_files_are_left_for_everything_else() -> None:
    import resource

    most = raise_file_limit()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 16 <= most <= max(16, soft - 200)
