"""ServerCalls that are kept for everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from app.server.middleware.concurrency import ClientConcurrency
from app.server.middleware.errors import RequestError
from app.server.middleware.response_cache import ResponseCache, encoding


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run in a thread of its own: where a browser was driven before, its event loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


class Counted:
    """ServerCalls with a body of some length, and counts how often."""

    def __init__(self, status: int = 200, length: int = 10) -> None:
        self.status, self.length, self.asked = status, length, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        await asyncio.sleep(0)
        headers = [(b"content-type", b"text/css"), (b"set-cookie", b"a=b"), (b"content-length", b"10")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"x" * self.length})


def scope(path: str) -> dict[str, Any]:
    return {"type": "http", "method": "HEAD", "path": path, "query_string": b"a=b"}


def test_many_who_ask_at_once_get_what_is_made_once() -> None:
    app = Counted()
    copies = ResponseCache(app)

    async def ask() -> None:
        answers = await asyncio.gather(*(copies.get(scope("/a"), []) for _ in range(50)))
        assert {id(answer) for answer in answers} == {id(answers[0])}
        assert answers[0].headers == [(b"content-type", b"text/css")]
        await copies.get(scope("/a"), [])
        await copies.get(scope("/a"), [(b"host", b"another")])
        await copies.get(scope("/a"), [(b"accept-encoding", b"br")])

    run(ask())
    assert app.asked == 2 and len(copies) == 2


def test_what_was_not_asked_for_longest_goes_first() -> None:
    app = Counted(length=40)
    copies = ResponseCache(app, most_bytes=100)

    async def ask() -> None:
        for path in "abacab":
            await copies.get(scope(path), [])

    run(ask())
    assert app.asked == 4 and len(copies) == 2  # b went for c


@pytest.mark.parametrize(("status", "refused"), [(404, 404), (403, 404), (500, 503), (307, 503)])
def test_only_answers_are_kept(status: int, refused: int) -> None:
    copies = ResponseCache(Counted(status))
    with pytest.raises(RequestError) as caught:
        run(copies.get(scope("/a"), []))
    assert caught.value.status == refused and len(copies) == 0


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [("gzip, deflate, br, zstd", "br"), ("gzip;q=1.0", "gzip"), ("", "identity"), ("x" * 5_000, "identity")],
)
def test_a_encoding_is_one_of_three(accepted: str, chosen: str) -> None:
    assert encoding(Headers({"accept-encoding": accepted})) == chosen


def test_places_are_for_each_client_and_taken_in_turn() -> None:
    limit, here, most = ClientConcurrency(2, 3, 5.0), list[int](), list[int]()

    async def work(client: str, number: int) -> None:
        async with limit.slot(client):
            here.append(number)
            most.append(len(here))
            await asyncio.sleep(0.01)
            here.remove(number)

    async def all_of_them() -> list[BaseException | None]:
        loud = [work("loud", number) for number in range(8)]
        return await asyncio.gather(*loud, return_exceptions=True)

    answers = run(all_of_them())
    refused = [each for each in answers if isinstance(each, RequestError)]
    assert len(refused) == 3 and {each.status for each in refused} == {429} and max(most) == 2
    assert len(limit) == 0


def test_a_place_that_does_not_come_is_not_waited_for_for_ever() -> None:
    limit = ClientConcurrency(1, 3, 0.01)

    async def hold() -> None:
        async with limit.slot("one"):
            async with limit.slot("another"):
                pass
            with pytest.raises(RequestError, match="from your address at once"):
                async with limit.slot("one"):
                    pass
        async with limit.slot("one"):
            pass

    run(hold())
