"""The paths that programs call. The request filter passes their requests on, with the caller's address checked."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from decoding.types import Trace

from ..server.limits import LIMITS
from ..server.middleware.bodies import Json, parse_json, read, replayed
from ..server.middleware.concurrency import ClientConcurrency
from ..server.middleware.errors import RequestError, not_found
from ..server.middleware.origin import Origin
from ..state import AppState
from .answers import ChatAnswer, decode_answer, model_object
from .errors import NO_STORE, STREAM, error_object, error_response, report, status_of
from .gradio_endpoint import CONFIG, POSTED, READ, GradioEndpoint
from .keys import Caller, Keys
from .requests import chat_call, decode_call, no_model
from .run import ApiRun, pieces

if TYPE_CHECKING:
    from .mcp_tool import McpTool

DECODE, CHAT, MODELS, MCP = "/v1/decode", "/v1/chat/completions", "/v1/models", "/mcp"
_Events = Callable[[str | None], list[str]]  # of a piece of the text; None: it has ended


_CALLER = ContextVar[Caller]("caller")  # of the MCP request in progress


class ApiService:
    """Answers the calls, on the same queue as the page's runs."""

    def __init__(self, app_state: AppState, keys: Keys, *, http: bool = True, mcp: bool = False) -> None:
        self._state, self._keys, self._http = app_state, keys, http
        self._gradio = GradioEndpoint(app_state)
        self._mcp: McpTool | None = None
        if mcp:
            from .mcp_tool import McpTool

            self._mcp = McpTool(self._called)
        self._calls = ClientConcurrency(LIMITS.events_each, 64, LIMITS.patience)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer calls of the MCP tool during the block."""
        async with self._mcp.running() if self._mcp else contextlib.nullcontext():
            yield

    def has(self, path: str) -> bool:
        """Return True if this is a path of the API."""
        return (self._http and (path.startswith("/v1/") or path == CONFIG)) or (self._mcp is not None and path == MCP)

    async def __call__(self, scope: Scope, receive: Receive, send: Send, check_origin: Callable[[], Origin]) -> None:
        """Answer a call; every error is an object in OpenAI's form. `check_origin` raises for a caller it refuses."""
        begun = False

        async def noting_send(message: Any) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            origin, headers = check_origin(), Headers(scope=scope)
            root = f"{origin.scheme}://{origin.host}{origin.path}"
            caller = Caller(self._keys.client(headers, origin.client), root)
            response = await self._answer(scope, headers, receive, noting_send, caller)
            if response is not None:
                await response(scope, receive, noting_send)
        except Exception as error:
            if begun:
                raise
            await error_response(error)(scope, receive, noting_send)

    async def _answer(
        self, scope: Scope, headers: Headers, receive: Receive, send: Send, caller: Caller
    ) -> Response | None:
        path, method = scope["path"], scope["method"]
        if path == MODELS or path.startswith(f"{MODELS}/"):
            _check_method(method, "GET", "HEAD")
            return self._models(path)
        if path in READ:
            _check_method(method, "GET", "HEAD")
            return self._gradio.read(path, caller)
        if path not in (DECODE, CHAT, MCP, *POSTED):
            raise not_found()
        _check_method(method, "POST")
        async with self._calls.slot(caller.client):
            body = await read(receive, headers.get("content-length"), LIMITS.body_bytes, LIMITS.body_seconds)
        parsed = parse_json(body)
        if path == MCP and self._mcp is not None:
            _CALLER.set(caller)
            await self._mcp(scope, _then(replayed(body), receive), _reporting(send))
            return None
        if path in POSTED:
            return self._gradio.take(parsed, caller)
        made = (decode_call if path == DECODE else chat_call)(self._state.catalog, self._state.default_model, parsed)
        run = ApiRun(made)
        if path == CHAT:
            answer = ChatAnswer.of(run, caller.root)
            if made.stream:
                return await self._streamed(run, caller, _chat_events(run, answer))
            return await self._whole(run, caller, receive, answer.whole)
        if made.stream:
            return await self._streamed(run, caller, _decode_events(run, caller.root))
        return await self._whole(run, caller, receive, lambda trace: decode_answer(run, trace, caller.root))

    def _models(self, path: str) -> Response:
        catalog = self._state.catalog
        if path == MODELS:
            return JSONResponse({"object": "list", "data": [*map(model_object, catalog.values())]}, headers=NO_STORE)
        name = unquote(path.removeprefix(f"{MODELS}/"))
        if name not in catalog:
            raise no_model(catalog, name)
        return JSONResponse(model_object(catalog[name]), headers=NO_STORE)

    async def _called(self, body: Json) -> Json:
        """Decode for the caller of the MCP tool."""
        caller = _CALLER.get()
        run = ApiRun(decode_call(self._state.catalog, self._state.default_model, body))
        return decode_answer(run, await self._decoded(run, caller.client), caller.root)

    async def _decoded(self, run: ApiRun, client: str) -> Trace:
        """Run a call to its end; returns its record."""
        async with contextlib.aclosing(pieces(self._state.jobs, run, client)) as texts:
            async for _ in texts:
                pass
        assert run.trace is not None
        return run.trace

    async def _whole(
        self, run: ApiRun, caller: Caller, receive: Receive, answer: Callable[[Trace], Json]
    ) -> Response | None:
        """Return the response to a finished run; None if the caller left before."""
        decoding = asyncio.ensure_future(self._decoded(run, caller.client))
        left = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({decoding, left}, return_when=asyncio.FIRST_COMPLETED)
            return JSONResponse(answer(decoding.result()), headers=NO_STORE) if decoding.done() else None
        finally:
            left.cancel()
            decoding.cancel()

    async def _streamed(self, run: ApiRun, caller: Caller, events: _Events) -> Response:
        """Return the response that streams a run. If the run fails before its first piece, the response is an error."""
        texts = pieces(self._state.jobs, run, caller.client)
        try:
            first = await anext(texts, "")
        except BaseException:
            await texts.aclose()
            raise
        return StreamingResponse(_sent(first, texts, events), headers=STREAM, media_type="text/event-stream")


async def _sent(first: str, texts: AsyncGenerator[str, None], events: _Events) -> AsyncIterator[str]:
    """Yield server-sent events for each piece of a text, and at its end."""
    try:
        async with contextlib.aclosing(texts):
            yield _written(events(first))
            async for text in texts:
                yield _written(events(text))
            yield _written(events(None))
    except Exception as error:
        report(error)
        yield f"data: {json.dumps(error_object(error, status_of(error)))}\n\n"


def _written(events: list[str]) -> str:
    return "".join(f"data: {event}\n\n" for event in events) or ": waiting\n\n"


def _decode_events(run: ApiRun, root: str) -> _Events:
    """Write pieces of the text as {"text": ...}, and in the end the whole answer."""

    def events(text: str | None) -> list[str]:
        if text is not None:
            return [json.dumps({"text": text})] if text else []
        assert run.trace is not None
        return [json.dumps(decode_answer(run, run.trace, root))]

    return events


def _chat_events(run: ApiRun, answer: ChatAnswer) -> _Events:
    begun = False

    def events(text: str | None) -> list[str]:
        nonlocal begun
        if text is None:
            assert run.trace is not None
            opening = [] if begun else [answer.chunk("", first=True)]
            return [*map(json.dumps, (*opening, answer.last(run.trace))), "[DONE]"]
        if not text:
            return []
        chunk = answer.chunk(text, first=not begun)
        begun = True
        return [json.dumps(chunk)]

    return events


async def _left(receive: Receive) -> None:
    """Wait until the caller has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _then(first: Receive, later: Receive) -> Receive:
    """Return a receive function that repeats a body that was read, then receives what follows it."""
    messages = 0

    async def receive() -> Any:
        nonlocal messages
        messages += 1
        return await (first if messages == 1 else later)()

    return receive


def _reporting(send: Send) -> Send:
    """Return a send function that reports the refusals of the protocol's own server."""

    async def send_and_report(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] >= 400:
            report(RequestError(message["status"], "the protocol's server refused the request"))
        await send(message)

    return send_and_report


def _check_method(method: str, *methods: str) -> None:
    if method not in methods:
        raise RequestError(405, f"This is asked for with {' or '.join(methods)}.")
