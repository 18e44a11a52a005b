"""What is refused before Gradio sees it: large bodies, doors that this page has no use for, and pages it has not."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from fastapi import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .limits import LIMITS

# Both write files for whoever asks; no component of the page takes any.
_CLOSED = ("/gradio_api/upload", "/gradio_api/deep_link")
_LARGE = f"The request is larger than {LIMITS.body_bytes >> 20} MB: send less."


class Doors:
    """Stands in front of an application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on with a bounded body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if (refusal := _refusal(Request(scope))) is not None:
            await refusal(scope, receive, send)
            return
        read = 0

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > LIMITS.body_bytes:  # it came in pieces, without a length
                raise HTTPException(413, _LARGE)
            return message

        await self._app(scope, bounded, send)


def _refusal(request: Request) -> Response | None:
    path, length = request.scope["path"], request.headers.get("content-length", "0")
    if path.rstrip("/") in _CLOSED:
        return PlainTextResponse("There is no such page.", 404)
    if not length.isdigit() or int(length[:20]) > LIMITS.body_bytes:
        return PlainTextResponse(_LARGE, 413)
    if path == "/" and "page" in request.query_params:  # Gradio's own name, for which it looks without a check
        rest = [each for each in parse_qsl(request.url.query, keep_blank_values=True) if each[0] != "page"]
        return RedirectResponse(f"./?{urlencode(rest)}" if rest else "./", 307)
    return None
