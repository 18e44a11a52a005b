"""Answers that are the same for everybody, kept as they were first given: the page, and the files that it loads.

Gradio puts the page together anew for each visitor, and packs each file for each: with many of both it had no time for
anybody else.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Scope

from .bodies import replayed
from .refused import RefusedError, not_found

_MOST_BYTES = 48 * 2**20  # Gradio's scripts and styles take 21 MB as they are; a page, of which hosts differ, 0.2
PACKINGS = ("br", "gzip")
_KEPT = (b"content-type", b"content-encoding", b"vary", b"etag", b"last-modified")
_Pairs = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Copy:
    """An answer."""

    headers: _Pairs
    body: bytes

    @property
    def tag(self) -> bytes:
        """What a browser names to ask whether its own copy is still the same."""
        return dict(self.headers).get(b"etag", b"")


class Copies:
    """Bounded in bytes; what was not asked for longest goes first."""

    def __init__(self, app: ASGIApp, most_bytes: int = _MOST_BYTES) -> None:
        self._app, self._most_bytes, self._bytes = app, most_bytes, 0
        self._kept: OrderedDict[tuple[str, ...], Copy] = OrderedDict()
        self._coming = dict[tuple[str, ...], asyncio.Task[Copy]]()

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, scope: Scope, headers: _Pairs, key: tuple[str, ...]) -> Copy:
        """The answer to a request without a query; `key` holds all that it depends on beside its path."""
        key = (scope["path"], _packing(headers), *key)
        if (copy := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return copy
        if (coming := self._coming.get(key)) is None:  # many may ask at the same moment: it is made once
            asked = {**scope, "method": "GET", "query_string": b"", "headers": headers}
            coming = self._coming[key] = asyncio.create_task(self._fetch(asked))
            coming.add_done_callback(lambda done: self._arrived(key, done))
        return await asyncio.shield(coming)

    async def _fetch(self, scope: Scope) -> Copy:
        status, told, pieces = 0, list[tuple[bytes, bytes]](), list[bytes]()

        async def send(message: Message) -> None:
            nonlocal status, told
            if message["type"] == "http.response.start":
                status, told = message["status"], list(message["headers"])
            else:
                pieces.append(message.get("body", b""))

        await self._app(scope, replayed(b""), send)
        if status in (403, 404):
            raise not_found()
        if status != 200:
            raise RefusedError(503, "The server could not answer that: try again.")
        return Copy([(name, value) for name, value in told if name.lower() in _KEPT], b"".join(pieces))

    def _arrived(self, key: tuple[str, ...], done: asyncio.Task[Copy]) -> None:
        del self._coming[key]
        if done.cancelled() or done.exception() is not None:
            return
        self._kept[key] = done.result()
        self._bytes += len(self._kept[key].body)
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= len(gone.body)


def _packing(headers: _Pairs) -> str:
    """How an answer may be packed: one of three, whatever else a browser offers."""
    return Headers(raw=headers).get("accept-encoding", "")


def packing(headers: Headers, known: Sequence[str] = PACKINGS) -> str:
    """The best of what a browser offers and is known here."""
    offered = {part.split(";")[0].strip() for part in headers.get("accept-encoding", "").lower().split(",")}
    return next((name for name in known if name in offered), "identity")
