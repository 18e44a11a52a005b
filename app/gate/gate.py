"""Checks every request before Gradio sees it, and every answer before a browser does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..limits import LIMITS
from . import bodies, policy
from .bodies import Shapes
from .copies import PACKINGS, Copies, packing
from .crowd import Crowd
from .origin import Origin, Owner
from .presence import CLIENT, Presence
from .refused import RefusedError, not_found
from .routes import Kind, Route, find

_log = logging.getLogger(__name__)
_FAILED = RefusedError(500, "The server could not answer that: try again.")
_Pairs = list[tuple[bytes, bytes]]


class Gate:
    """Stands in front of an application."""

    def __init__(self, app: ASGIApp, shapes: Shapes, owner: Owner, presence: Presence) -> None:
        self._app, self._shapes, self._owner, self._presence = app, shapes, owner, presence
        self._copies = Copies(app)
        self._policies: dict[bytes, tuple[bytes, bytes]] = {}
        self._quick = Crowd(LIMITS.events_each, 256, LIMITS.patience)
        self._calls = Crowd(LIMITS.calls_each, 64, LIMITS.patience)
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End the streams, which would never end by themselves; called in the server's loop."""
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or say in a sentence why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        begun = False

        async def told(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *policy.ALWAYS]
            async with asyncio.timeout(LIMITS.send_seconds):  # of a stream that nobody takes from the wire
                await send(message)

        try:
            await self._answer(scope, receive, told)
        except RefusedError as refused:
            if not begun:
                _log.info("refused (%d): %s %s", refused.status, scope["method"], scope["path"])
                await refused.response(scope["method"])(scope, receive, told)
        except TimeoutError:
            _log.info("nobody reads the answer to %s %s", scope["method"], scope["path"])
        except Exception:
            _log.exception("no answer to %s %s", scope["method"], scope["path"])
            if not begun:
                await _FAILED.response(scope["method"])(scope, receive, told)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = self._owner.read(scope, headers)
        if (route := find(scope["path"])) is None:
            raise not_found()
        if scope["method"] not in route.methods:
            raise RefusedError(405, f"This is asked for with {' or '.join(sorted(route.methods))}.")
        if "POST" in route.methods:
            self._owner.check_post(origin, headers)
            await self._post(scope, receive, send, route, origin)
        else:
            await self._get(scope, self._listening(receive), send, route, origin)

    async def _get(self, scope: Scope, receive: Receive, send: Send, route: Route, origin: Origin) -> None:
        asked = Headers(scope=scope)
        clean = {**scope, "headers": _pairs(origin, asked, ("gzip",) if route.kind is Kind.OWN else PACKINGS)}
        if route.kind in (Kind.PAGE, Kind.FILE, Kind.OWN):
            await self._copy(clean, send, route, origin, asked)
        elif route.kind is Kind.EVENTS:
            session = bodies.check_session(dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("session_hash"))
            if not self._presence.knows(session):
                raise not_found()
            with self._presence.reading(session):
                await self._app({**clean, "query_string": f"session_hash={session}".encode()}, receive, send)
        else:
            await self._app(clean, receive, send)

    def _listening(self, receive: Receive) -> Receive:
        """What comes of a request without a body: that its visitor leaves, or that the server is being stopped."""

        async def hear() -> Message:
            ended = asyncio.create_task(self._closing.wait())
            message = asyncio.ensure_future(receive())
            try:
                await asyncio.wait({ended, message}, return_when=asyncio.FIRST_COMPLETED)
                if not message.done():
                    return {"type": "http.disconnect"}
                told = message.result()
                return {**told, "body": b"", "more_body": False} if told["type"] == "http.request" else told
            finally:
                ended.cancel()
                message.cancel()

        return hear

    async def _copy(self, scope: Scope, send: Send, route: Route, origin: Origin, asked: Headers) -> None:
        page = route.kind is Kind.PAGE
        copy = await self._copies.get(scope, scope["headers"], (origin.scheme, origin.host) if page else ())
        hashed = route.kind is Kind.OWN or scope["path"].startswith("/assets/")  # another content, another address
        caching = policy.NEVER if page else policy.FOREVER if hashed else policy.SHORTLY
        headers = [*copy.headers, caching]
        if page:
            headers.append(await self._policy(scope, origin))
        if copy.tag and asked.get("if-none-match", "").encode() == copy.tag:
            await send({"type": "http.response.start", "status": 304, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        headers.append((b"content-length", str(len(copy.body)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else copy.body})

    async def _policy(self, scope: Scope, origin: Origin) -> tuple[bytes, bytes]:
        """The page's policy; its hashes are those of the page as it is unpacked."""
        plain = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        page = await self._copies.get(scope, [*plain, (b"accept-encoding", b"identity")], (origin.scheme, origin.host))
        if page.body not in self._policies:
            self._policies = {page.body: policy.content_policy(page.body)}
        return self._policies[page.body]

    async def _post(self, scope: Scope, receive: Receive, send: Send, route: Route, origin: Origin) -> None:
        call = route.kind is Kind.CALL
        most, seconds = (LIMITS.file_bytes, LIMITS.file_seconds) if call else (LIMITS.body_bytes, LIMITS.body_seconds)
        async with (self._calls if call else self._quick).place(origin.client):
            headers = Headers(scope=scope)
            body = await bodies.read(receive, headers.get("content-length"), most, seconds)
            if call:
                body, _ = bodies.check_call(body, self._shapes.calls)
            else:
                queued = route.kind is Kind.RUN
                body, session = bodies.check_event(body, self._shapes.runs if queued else self._shapes.quick)
                if queued:
                    self._presence.expect(session, origin.client)
            CLIENT.set(origin.client)
            pairs = _pairs(origin, headers)
            pairs += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await self._app({**scope, "headers": pairs}, bodies.replayed(body), send)


def _pairs(origin: Origin, headers: Headers, packings: Sequence[str] = PACKINGS) -> _Pairs:
    """The headers that Gradio gets: no cookie, no origin that it would allow, no proxy's word but what was checked."""
    return [
        (b"host", origin.host.encode()),
        (b"x-forwarded-proto", origin.scheme.encode()),
        (b"accept-encoding", packing(headers, packings).encode()),
    ]
