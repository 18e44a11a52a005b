"""The page, rendered and compressed once for all hosts and schemes.

Gradio writes the requested address into the page, as the root of its requests. Its scripts also accept a relative root,
which they resolve against the address in the browser; so the page is the same for everybody.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping

import brotli  # type: ignore[import-untyped]
from starlette.types import Scope

from . import response_headers
from .response_cache import Cached, ResponseCache

_HEADERS = [(b"host", b"page.invalid"), (b"accept-encoding", b"identity")]
_ROOT, _RELATIVE_ROOT = b'"http://page.invalid"', b'"."'


class RenderedPage:
    """Renders the page through a cache."""

    def __init__(self, cache: ResponseCache) -> None:
        self._cache = cache
        self._rendered: Cached | None = None
        self._encoded: Mapping[str, Cached] = {}

    async def get(self, scope: Scope, encoding: str) -> Cached:
        """Return the page in one of three encodings, with its content security policy."""
        rendered = await self._cache.get({**scope, "scheme": "http"}, _HEADERS)
        if rendered is not self._rendered:
            self._rendered, self._encoded = rendered, _encoded(rendered)
        return self._encoded[encoding]


def _encoded(rendered: Cached) -> dict[str, Cached]:
    page = rendered.body.replace(_ROOT, _RELATIVE_ROOT)
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"vary", b"Accept-Encoding"),
        response_headers.content_policy(page),
        response_headers.NEVER,
    ]
    packed = {"br": brotli.compress(page, quality=5), "gzip": gzip.compress(page, 9, mtime=0)}
    return {"identity": Cached(headers, page)} | {
        name: Cached([*headers, (b"content-encoding", name.encode())], body) for name, body in packed.items()
    }
