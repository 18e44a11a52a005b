"""Caches responses that are the same for everybody: the page and the files that it loads.

Gradio renders the page for each request and compresses each file for each request, on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Scope

from .bodies import replayed
from .errors import RequestError, not_found

_MOST_BYTES = 48 * 2**20  # Gradio's scripts and styles take 21 MB as they are
ENCODINGS = ("br", "gzip")
_STORED_HEADERS = (b"content-type", b"content-encoding", b"vary", b"etag", b"last-modified")
_Pairs = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Cached:
    """A response."""

    headers: _Pairs
    body: bytes

    @property
    def tag(self) -> bytes:
        """The entity tag."""
        return dict(self.headers).get(b"etag", b"")


class ResponseCache:
    """An LRU cache, bounded in bytes."""

    def __init__(self, app: ASGIApp, most_bytes: int = _MOST_BYTES) -> None:
        self._app, self._most_bytes, self._bytes = app, most_bytes, 0
        self._responses: OrderedDict[tuple[str, str], Cached] = OrderedDict()
        self._pending = dict[tuple[str, str], asyncio.Task[Cached]]()

    def __len__(self) -> int:
        return len(self._responses)

    async def get(self, scope: Scope, headers: _Pairs) -> Cached:
        """Return the response to a request without its query; of the headers it depends on the encoding alone."""
        key = (scope["path"], _encoding(headers))
        if (cached := self._responses.get(key)) is not None:
            self._responses.move_to_end(key)
            return cached
        if (pending := self._pending.get(key)) is None:  # concurrent requests share one fetch
            asked = {**scope, "method": "GET", "query_string": b"", "headers": headers}
            pending = self._pending[key] = asyncio.create_task(self._fetch(asked))
            pending.add_done_callback(lambda done: self._store(key, done))
        return await asyncio.shield(pending)

    async def _fetch(self, scope: Scope) -> Cached:
        status, headers, pieces = 0, list[tuple[bytes, bytes]](), list[bytes]()

        async def send(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message["headers"])
            else:
                pieces.append(message.get("body", b""))

        await self._app(scope, replayed(b""), send)
        if status in (403, 404):
            raise not_found()
        if status != 200:
            raise RequestError(503, "The server could not answer that: try again.")
        return Cached([(name, value) for name, value in headers if name.lower() in _STORED_HEADERS], b"".join(pieces))

    def _store(self, key: tuple[str, str], done: asyncio.Task[Cached]) -> None:
        del self._pending[key]
        if done.cancelled() or done.exception() is not None:
            return
        self._responses[key] = done.result()
        self._bytes += len(self._responses[key].body)
        while self._bytes > self._most_bytes and len(self._responses) > 1:
            _, gone = self._responses.popitem(last=False)
            self._bytes -= len(gone.body)


def _encoding(headers: _Pairs) -> str:
    """Return the content encoding asked for: one of three."""
    return Headers(raw=headers).get("accept-encoding", "")


def encoding(headers: Headers, encodings: Sequence[str] = ENCODINGS) -> str:
    """Return the best content encoding that a browser accepts."""
    offered = {part.split(";")[0].strip() for part in headers.get("accept-encoding", "").lower().split(",")}
    return next((name for name in encodings if name in offered), "identity")
