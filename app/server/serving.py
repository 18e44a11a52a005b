"""Serves the page: its own scripts and styles, and Gradio behind the request filter, on uvicorn with limits."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import gradio as gr
import uvicorn
from fastapi import FastAPI
from plotly.offline import get_plotlyjs
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from decoding.errors import ParamError
from viz.page import style
from viz.scripts import join

from .gradio_state import disable_session_state, poll_less, sweep
from .limits import LIMITS
from .middleware.bodies import Shapes
from .middleware.connections import Connection, ConnectionLimit, raise_file_limit
from .middleware.origin import Owner
from .middleware.request_filter import Api, RequestFilter
from .middleware.routes import Kind
from .middleware.session_tracker import SessionTracker

_log = logging.getLogger(__name__)
_SCRIPTS = Path(__file__).parents[2] / "assets" / "page"
_SHEETS = ("page", "debug", "cost", "learn")
_FOLDER = "specscope"
# Seconds for which a thread that computes may keep the others from the interpreter. At Python's 5 ms each of the few
# moments that an answer needs waits that long beside a run: fifty pages at once took four times as long.
_TURN = 0.0005
Offers = Mapping[Kind, Sequence[BaseRoute]]  # what is served beside the page


class Site:
    """The static files of the page, compressed once; browsers cache them for ever."""

    def __init__(self, landing: str, opening: str = "") -> None:
        self._opens = bool(opening)
        sheet = style() + "\n" + "\n".join((_SCRIPTS / f"{name}.css").read_text(encoding="utf-8") for name in _SHEETS)
        contents = {
            "player": ("text/javascript", join(_SCRIPTS / "page.js")),
            "style": ("text/css", sheet),
            "opening": ("application/x-ndjson", opening),
            "landing": ("application/x-ndjson", landing),
            "plotly": ("text/javascript", get_plotlyjs()),
        }
        self._files = {
            name: (kind, hashlib.sha256(content.encode()).hexdigest()[:16], gzip.compress(content.encode(), 6, mtime=0))
            for name, (kind, content) in contents.items()
        }

    def url(self, name: str) -> str:
        """Return a file's address with a hash of its content; relative, since a proxy may add a path."""
        return f"{_FOLDER}/{name}?{self._files[name][1]}"

    def head(self) -> str:
        """Return the HTML that loads the files. The script of the charts runs after the text is on the screen."""
        opening = f'data-opening="{self.url("opening")}" ' if self._opens else ""
        return (
            f'<link rel="stylesheet" href="{self.url("style")}">'
            f'<link rel="preload" as="script" href="{self.url("plotly")}">'
            f'<script src="{self.url("player")}" {opening}data-landing="{self.url("landing")}" '
            f'data-plotly="{self.url("plotly")}"></script>'
        )

    def routes(self) -> list[Route]:
        """Return the routes of the files."""
        return [Route(f"/{_FOLDER}/{{name}}", self._answer)]

    async def _answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            return Response("There is no such file.", status_code=404, media_type="text/plain")
        kind, _, packed = self._files[name]
        headers = {"Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, media_type=kind, headers=headers | {"Content-Encoding": "gzip"})
        return Response(gzip.decompress(packed), media_type=kind, headers=headers)


def theme() -> gr.themes.Base:
    """Return the Gradio theme: system fonts, little padding, one accent colour; the style sheet adds the rest."""
    sans = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
    mono = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")
    made: gr.themes.Base = gr.themes.Base(
        primary_hue="blue",
        neutral_hue="slate",
        spacing_size="sm",
        radius_size="sm",
        text_size="sm",
        font=sans,
        font_mono=mono,
    )
    return made


class Running:
    """The page on a uvicorn server, which runs in its own thread."""

    def __init__(
        self,
        page: gr.Blocks,
        site: Site,
        tracker: SessionTracker,
        owner: Owner,
        more: Offers | None = None,
        api: Api | None = None,
        lesson_asked: Callable[[str], object] | None = None,
    ) -> None:
        """Prepare the page, and more. `lesson_asked` gets the lesson of an address before the page is answered."""
        os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
        sys.setswitchinterval(_TURN)
        page.max_threads = LIMITS.threads
        page.queue(max_size=LIMITS.waiting * 4, default_concurrency_limit=8, api_open=False)
        self.page, self.tracker = page, tracker
        offers = more or {}
        routes = [*site.routes(), *chain.from_iterable(offers.values())]
        app = FastAPI(lifespan=self._lifespan, docs_url=None, redoc_url=None, openapi_url=None, routes=routes)
        gr.mount_gradio_app(
            app,
            page,
            path="/",
            show_error=False,
            max_file_size=LIMITS.upload_bytes,
            enable_monitoring=False,
            ssr_mode=False,
            pwa=False,
            mcp_server=False,
            run_history=False,
            footer_links=[],
            allowed_paths=[],
            theme=theme(),
            head=site.head(),
        )
        page.app = next(route.app for route in app.routes if isinstance(route, Mount))  # type: ignore[assignment]
        disable_session_state(page)
        poll_less(page)
        self._app = RequestFilter(app, Shapes.of(page), owner, tracker, frozenset(offers), api, lesson_asked)
        self._api, self._proxied = api, owner.proxied

    def start(self, host: str, port: int) -> Running:
        """Serve in background threads; raises ParamError if the address cannot be used."""
        check_free(host, port)
        most = raise_file_limit()
        limit = ConnectionLimit(most, most if self._proxied else LIMITS.connections_each)
        config = uvicorn.Config(
            self._app,
            host=host.strip("[]"),
            port=port,
            http=partial(Connection, limit=limit, seconds=LIMITS.head_seconds),  # type: ignore[arg-type]
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run, name="server", daemon=True)
        self._thread.start()
        while not self.server.started:
            if not self._thread.is_alive():
                raise ParamError(f"cannot serve on {host}:{port}: choose another --host or --port")
            time.sleep(0.01)
        return self

    def stop(self, seconds: float = 3.0) -> bool:
        """Stop accepting requests and end those in progress; returns whether all ended in time."""
        self.page._queue.close()
        self.page.is_running = False
        self._loop.call_soon_threadsafe(self._app.close)
        self.server.should_exit = True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self._loop = loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_error)
        sweeping = asyncio.create_task(sweep(self.page, self.tracker))
        try:
            async with self._api.running() if self._api else contextlib.nullcontext():
                yield
        finally:
            sweeping.cancel()


def _log_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if "asyncgen" not in context:  # Gradio's event stream goes on when it is closed, which asyncio reports
        _log.error("%s", context.get("message"), exc_info=context.get("exception"))


def say(sentence: str) -> None:
    """Print a line for the user who started the server, if the terminal is still open."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(sentence + "\n")
        sys.stdout.flush()


def check_free(host: str, port: int) -> None:
    """Raise ParamError if the address cannot be used; without this check Gradio would print a stack trace."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise ParamError(
            f"cannot serve on {host}:{port}: {(error.strerror or str(error)).lower()}; choose another --host or --port"
        ) from None
