"""The request filter: checks every request before Gradio handles it, and sets headers of every response."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Protocol
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..limits import LIMITS
from . import bodies, response_headers
from .bodies import Shapes
from .browser_cookie import BrowserCookie
from .concurrency import ClientConcurrency
from .connections import pieces
from .errors import RequestError, not_found
from .origin import Origin, Owner
from .rendered_page import RenderedPage
from .response_cache import ENCODINGS, ResponseCache, encoding
from .routes import API, Kind, Route, find_route
from .session_tracker import CLIENT, SessionTracker

_log = logging.getLogger(__name__)
_FAILED = RequestError(500, "The server could not answer that: try again.")
_MOST_QUERY = 2048  # bytes of an address that are read here: the browser reads it whole
_Pairs = list[tuple[bytes, bytes]]


class Api(Protocol):
    """The API for programs, whose errors have another form."""

    def has(self, path: str) -> bool:
        """Return True if this is one of its paths."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which requests are answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send, check_origin: Callable[[], Origin]) -> None:
        """Answer a request; `check_origin` raises RequestError for one that another site makes a browser send."""


class RequestFilter:
    """ASGI middleware around an application."""

    def __init__(
        self,
        app: ASGIApp,
        shapes: Shapes,
        owner: Owner,
        tracker: SessionTracker,
        offered: frozenset[Kind] = frozenset(),
        api: Api | None = None,
        lesson_asked: Callable[[str], object] | None = None,
    ) -> None:
        self._app, self._shapes, self._owner, self._tracker = app, shapes, owner, tracker
        self._offered, self._api, self._lesson_asked = offered, api, lesson_asked
        self._cache = ResponseCache(app)
        self._page, self._cookie = RenderedPage(self._cache), BrowserCookie()
        self._quick = ClientConcurrency(LIMITS.events_each, 256, LIMITS.patience)
        self._calls = ClientConcurrency(LIMITS.calls_each, 64, LIMITS.patience)
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End the event streams, which have no end of their own; call it in the event loop."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or respond with one sentence that says why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        begun, ended = False, False

        async def checked_send(message: Message) -> None:
            nonlocal begun, ended
            begun = True
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *response_headers.ALWAYS]
                await send(message)
            else:
                for piece in pieces(message):
                    await send(piece)

        try:
            await self._answer(scope, receive, checked_send)
            if begun and not ended and self._closing.is_set():
                await checked_send({"type": "http.response.body", "body": b""})
        except RequestError as refused:
            if not begun:
                facts = {"event": "refusal", "reason": str(refused.status)}
                about = refused.status, scope["method"], scope["path"]
                _log.info("refused (%d): %s %s", *about, extra={"facts": facts})
                await refused.response(scope["method"])(scope, receive, checked_send)
        except Exception:
            _log.exception("no answer to %s %s", scope["method"], scope["path"])
            if not begun:
                await _FAILED.response(scope["method"])(scope, receive, checked_send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if self._api is not None and self._api.has(scope["path"]):
            await self._api(scope, receive, send, partial(self._caller, scope, headers))
            return
        route = find_route(scope["path"], self._offered)
        origin = Origin("", "", "http") if route and route.kind is Kind.HEALTH else self._owner.read(scope, headers)
        if route is None:
            raise not_found()
        if scope["method"] not in route.methods:
            raise RequestError(405, f"This is asked for with {' or '.join(sorted(route.methods))}.")
        if route.kind is Kind.METRICS and self._owner.proxied and "x-forwarded-for" in headers:
            raise not_found()  # a metrics server does not come through the proxy, which is open to everybody
        if "POST" in route.methods:
            self._owner.check_post(origin, headers)
            await self._post(scope, receive, send, route, origin)
        else:
            await self._get(scope, self._listening(receive), send, route, origin)

    def _caller(self, scope: Scope, headers: Headers) -> Origin:
        """Check where a program's request comes from; raises RequestError."""
        origin = self._owner.read(scope, headers)
        if scope["method"] == "POST":
            self._owner.check_post(origin, headers)
        return origin

    async def _get(self, scope: Scope, receive: Receive, send: Send, route: Route, origin: Origin) -> None:
        asked = Headers(scope=scope)
        clean = {**scope, "headers": _pairs(origin, asked, ("gzip",) if route.kind is Kind.OWN else ENCODINGS)}
        if route.kind in (Kind.PAGE, Kind.FILE, Kind.OWN):
            await self._cached(clean, send, route, origin, asked)
        elif route.kind is Kind.EVENTS:
            session = self._cookie.session(bodies.check_session(_query(scope).get("session_hash")), origin, asked)
            if not self._tracker.knows(session):
                raise not_found()
            with self._tracker.reading(session):
                await self._app({**clean, "query_string": f"session_hash={session}".encode()}, receive, send)
        elif route.kind in (Kind.RECONNECT, Kind.HEALTH, Kind.METRICS):
            await self._app(clean, receive, send)
        else:
            session = self._cookie.session(scope["path"].rpartition("/")[2], origin, asked)
            path = f"{API}/heartbeat/{session}"
            await self._app({**clean, "path": path, "raw_path": path.encode()}, receive, send)

    def _listening(self, receive: Receive) -> Receive:
        """Return a receive function for requests without a body: it reports a disconnect when the server stops, too."""

        async def receive_or_close() -> Message:
            ended = asyncio.create_task(self._closing.wait())
            message = asyncio.ensure_future(receive())
            try:
                await asyncio.wait({ended, message}, return_when=asyncio.FIRST_COMPLETED)
                if not message.done():
                    return {"type": "http.disconnect"}
                event = message.result()
                return {**event, "body": b"", "more_body": False} if event["type"] == "http.request" else event
            finally:
                ended.cancel()
                message.cancel()

        return receive_or_close

    async def _cached(self, scope: Scope, send: Send, route: Route, origin: Origin, asked: Headers) -> None:
        if route.kind is Kind.PAGE:
            query = _query(scope)
            if self._lesson_asked and scope["method"] == "GET" and query.get("screen") == "learn":
                self._lesson_asked(query.get("lesson", ""))
            cached = await self._page.get(scope, encoding(asked))
            headers = [*cached.headers, *self._cookie.headers(origin, asked)]
        else:
            cached = await self._cache.get(scope, scope["headers"])
            # If the address changes with the content, a browser may cache it forever.
            hashed = route.kind is Kind.OWN or scope["path"].startswith("/assets/")
            headers = [*cached.headers, response_headers.FOREVER if hashed else response_headers.SHORTLY]
        if cached.tag and asked.get("if-none-match", "").encode() == cached.tag:
            await send({"type": "http.response.start", "status": 304, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        headers.append((b"content-length", str(len(cached.body)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else cached.body})

    async def _post(self, scope: Scope, receive: Receive, send: Send, route: Route, origin: Origin) -> None:
        call = route.kind is Kind.CALL
        most, seconds = (LIMITS.file_bytes, LIMITS.file_seconds) if call else (LIMITS.body_bytes, LIMITS.body_seconds)
        async with (self._calls if call else self._quick).slot(origin.client):
            headers = Headers(scope=scope)
            body = await bodies.read(receive, headers.get("content-length"), most, seconds)
            if call:
                body = bodies.check_call(body, self._shapes.calls)
            else:
                queued = route.kind is Kind.RUN
                events = self._shapes.runs if queued else self._shapes.quick
                body, session = bodies.check_event(body, events, lambda tab: self._cookie.session(tab, origin, headers))
                if queued:
                    self._tracker.expect(session, origin.client)
            CLIENT.set(origin.client)
            pairs = _pairs(origin, headers)
            pairs += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await self._app({**scope, "headers": pairs}, bodies.replayed(body), send)


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"][:_MOST_QUERY].decode("latin-1")))


def _pairs(origin: Origin, headers: Headers, encodings: Sequence[str] = ENCODINGS) -> _Pairs:
    """Return the headers for Gradio: no cookies, no Origin (it would send CORS headers), checked proxy headers."""
    return [
        (b"host", origin.host.encode()),
        (b"x-forwarded-proto", origin.scheme.encode()),
        (b"accept-encoding", encoding(headers, encodings).encode()),
    ]
