"""Connections of a small server, with the limits that the page's has."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import uvicorn

from app.server.middleware.connections import Connection, ConnectionLimit, pieces, raise_file_limit

_SECONDS = 0.3


_LARGE = 8 * 2**20


async def answer(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/stream":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    body = b"hello" if scope["path"] == "/" else b"x" * _LARGE
    length = str(len(body)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    for piece in pieces({"type": "http.response.body", "body": body}):
        await send(piece)


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    seconds = getattr(request, "param", _SECONDS)
    kind: Any = partial(Connection, limit=ConnectionLimit(4, 3), seconds=seconds, send_seconds=_SECONDS)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(answer, http=kind, ws="none", lifespan="off", log_config=None, timeout_keep_alive=60)
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
    """Count the seconds until the other side ends it."""
    begin = time.monotonic()
    with line, contextlib.suppress(ConnectionResetError):
        assert line.recv(1) == b""
    return time.monotonic() - begin


def answers(line: socket.socket) -> bool:
    """Return whether a request on it is answered."""
    line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    got = b""
    while not got.endswith(b"hello"):
        piece = line.recv(1_000)
        if not piece:
            return False
        got += piece
    return True


@pytest.mark.parametrize("beginning", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: "])
def test_a_request_that_does_not_come_ends_the_connection(port: int, beginning: bytes) -> None:
    """Else it is held for ever; and each letter must not buy more time."""
    with connect(port) as line:
        begin = time.monotonic()
        line.sendall(beginning)
        line.settimeout(_SECONDS / 10)
        with contextlib.suppress(ConnectionError):
            for _ in range(100):  # more time in all than the request has
                line.sendall(b"a" if beginning else b"")
                with contextlib.suppress(TimeoutError):
                    assert line.recv(1) == b""
                    break
            else:
                pytest.fail("the connection is still open")
        assert time.monotonic() - begin > _SECONDS * 0.5


def test_so_does_the_second_request_of_a_connection(port: int) -> None:
    with connect(port) as line:
        assert answers(line)
        line.sendall(b"GET / HTT")
        assert closed_after(line) > _SECONDS * 0.5


def test_a_connection_between_two_requests_is_kept(port: int) -> None:
    """A browser keeps some open for its next request."""
    with connect(port) as line:
        assert answers(line)
        line.settimeout(_SECONDS * 2)
        with pytest.raises(TimeoutError):
            line.recv(1)
        line.settimeout(5)
        assert answers(line)


def is_reset(line: socket.socket, seconds: float) -> bool:
    """Return whether the other side drops a connection within so much time; nothing is read from it."""
    watch = select.poll()
    watch.register(line, 0)  # for a hang-up alone
    return bool(watch.poll(1000 * seconds))


@pytest.mark.parametrize("read", [0, 1])
def test_a_client_that_does_not_take_its_answer_is_ended(port: int, read: int) -> None:
    """So is one that reads a byte now and then. The whole of an answer is made at once: nobody waits to send it."""
    with connect(port) as line:
        line.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        until = time.monotonic() + 20 * _SECONDS
        while not is_reset(line, _SECONDS / 5):
            assert time.monotonic() < until
            with contextlib.suppress(ConnectionResetError):
                line.recv(1) if read else None


def test_a_client_that_reads_slowly_gets_everything(port: int) -> None:
    with connect(port) as line:
        line.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        begin, size = time.monotonic(), 0
        while got := line.recv(_LARGE // 64):
            size += len(got)
            time.sleep(_SECONDS / 20)
        assert size > _LARGE and time.monotonic() - begin > 2 * _SECONDS


def test_a_stream_that_has_nothing_to_send_is_kept(port: int) -> None:
    with connect(port) as line:
        line.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        assert not is_reset(line, 3 * _SECONDS) and b"hello" in line.recv(1_000)


@pytest.mark.parametrize("port", [60.0], indirect=True)  # so that it is their number that ends connections
def test_one_address_cannot_take_all_connections(port: int) -> None:
    held = [connect(port) for _ in range(3)]
    closed_after(connect(port))
    with connect(port, "127.0.0.2") as other:
        assert answers(other)
        closed_after(connect(port, "127.0.0.3"))  # the server has no more than four
    for line in held:
        assert answers(line)
        line.close()
    for _ in range(100):  # the server hears of closed connections when it comes to them
        with connect(port) as again, contextlib.suppress(ConnectionError):
            if answers(again):
                break
    else:
        pytest.fail("no connection became free")


def test_files_are_left_for_everything_else() -> None:
    import resource

    most = raise_file_limit()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 16 <= most <= max(16, soft - 200)
