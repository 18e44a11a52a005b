"""What the request filter itself does: it ends streams when the server stops, and tells which lesson is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from app.server.middleware.bodies import Shapes
from app.server.middleware.origin import Owner
from app.server.middleware.request_filter import RequestFilter
from app.server.middleware.session_tracker import SessionTracker
from tools.page import API

SCOPE = {
    "type": "http",
    "method": "GET",
    "path": f"{API}/heartbeat/abc",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1:7860")],
    "client": ("127.0.0.1", 4000),
    "scheme": "http",
}


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run in a thread of its own: where a browser was driven before, its event loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def beating(scope: Scope, receive: Receive, send: Send) -> None:
    """Beat once, then wait until its reader is gone, and leave the response as it is, as Starlette does."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ALIVE", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass


def test_a_stream_that_the_server_ends_is_complete() -> None:
    """A response without an end is an error of the server, which its log would tell of at every stop."""

    async def stopped() -> list[Message]:
        sent, beats = list[Message](), asyncio.Event()
        asked = RequestFilter(beating, Shapes({}, {}, {}), Owner(), SessionTracker())

        async def receive() -> Message:
            await asyncio.Event().wait()  # the reader says nothing
            raise AssertionError

        async def send(message: Message) -> None:
            sent.append(message)
            if message.get("body"):
                beats.set()

        stream = asyncio.create_task(asked(SCOPE, receive, send))
        await beats.wait()
        asked.close()
        await stream
        return sent

    *_, alive, end = run(stopped())
    assert alive["body"] == b"ALIVE"
    assert end == {"type": "http.response.body", "body": b""}


@pytest.mark.parametrize(
    ("method", "query", "lessons"),
    [
        ("GET", b"screen=learn&lesson=law", ["law"]),
        ("GET", b"lesson=%ff%22&screen=learn", ['\ufffd"']),
        ("GET", b"screen=learn", [""]),
        ("GET", b"screen=run&lesson=law", []),
        ("GET", b"a=" + b"b" * 60_000 + b"&screen=learn&lesson=law", []),
        ("HEAD", b"screen=learn&lesson=law", []),
    ],
)
def test_the_lesson_that_an_address_names_is_known_before_the_page_is_sent(
    method: str, query: bytes, lessons: list[str]
) -> None:
    named = list[str]()

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        assert named == lessons
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"<html></html>"})

    async def asked() -> list[Message]:
        sent = list[Message]()
        filter_ = RequestFilter(page, Shapes({}, {}, {}), Owner(), SessionTracker(), lesson_asked=named.append)

        async def receive() -> Message:
            raise AssertionError("a page is asked for without a body")

        async def send(message: Message) -> None:
            sent.append(message)

        await filter_({**SCOPE, "method": method, "path": "/", "query_string": query}, receive, send)
        return sent

    begin, *_ = run(asked())
    assert begin["status"] == 200 and named == lessons
