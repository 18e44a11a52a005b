"""How the page is served: its own scripts and styles, and Gradio with everything off that the page does not need."""

from __future__ import annotations

import gzip
import hashlib
import os
import socket
import sys
from pathlib import Path
from typing import Any

import gradio as gr
from plotly.offline import get_plotlyjs
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from decoding.errors import ParamError
from viz.page import player_script, style

from .doors import Doors
from .limits import LIMITS

_STATIC = Path(__file__).parent / "static"
_FOREVER = "public, max-age=31536000, immutable"  # the address holds a hash of the content
_FOLDER = "specscope"


class Site:
    """The files that the page loads from its own server, each packed once and then cached by browsers for good."""

    def __init__(self, landing: str) -> None:
        own = [file.read_text(encoding="utf-8") for file in sorted(_STATIC.glob("*.js"))]
        script = "\n".join([player_script(), *own])
        sheet = style() + "\n" + (_STATIC / "app.css").read_text(encoding="utf-8")
        contents = {
            "player": ("text/javascript", script),
            "style": ("text/css", sheet),
            "landing": ("application/x-ndjson", landing),
            "plotly": ("text/javascript", get_plotlyjs()),
        }
        self._files = {
            name: (kind, hashlib.sha256(content.encode()).hexdigest()[:16], gzip.compress(content.encode(), 6, mtime=0))
            for name, (kind, content) in contents.items()
        }

    def place(self, name: str) -> str:
        """A file's address, relative: a proxy may have put the page anywhere. It changes with the content."""
        return f"{_FOLDER}/{name}?{self._files[name][1]}"

    def head(self) -> str:
        """What the page loads, nothing of it from elsewhere; charts' scripts run once the text is on the screen."""
        return (
            f'<link rel="stylesheet" href="{self.place("style")}">'
            f'<link rel="preload" as="script" href="{self.place("plotly")}">'
            f'<script src="{self.place("player")}" data-landing="{self.place("landing")}" '
            f'data-plotly="{self.place("plotly")}"></script>'
        )

    def routes(self) -> list[Route]:
        """Where the files are answered."""
        return [Route(f"/{_FOLDER}/{{name}}", self._answer)]

    async def _answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            return Response("There is no such file.", status_code=404, media_type="text/plain")
        kind, _, packed = self._files[name]
        headers = {"Cache-Control": _FOREVER, "X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, media_type=kind, headers=headers | {"Content-Encoding": "gzip"})
        return Response(gzip.decompress(packed), media_type=kind, headers=headers)


def theme() -> gr.themes.Base:
    """Quiet: system fonts, little padding, one accent; the page's own style sheet does the rest."""
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


def launch(page: gr.Blocks, site: Site, host: str, port: int) -> Any:
    """Serve the page from threads of its own; raises ParamError where the address cannot be had."""
    check_free(host, port)
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    page.queue(max_size=LIMITS.waiting * 4, default_concurrency_limit=8, api_open=False)
    calm(page)
    return page.launch(
        server_name=host,
        server_port=port,
        share=False,
        show_error=False,
        quiet=True,
        prevent_thread_lock=True,
        max_threads=LIMITS.threads,
        max_file_size=LIMITS.upload_bytes,
        state_session_capacity=LIMITS.sessions,
        strict_cors=True,
        enable_monitoring=False,
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
        run_history=False,
        footer_links=[],
        allowed_paths=[],
        theme=theme(),
        head=site.head(),
        app_kwargs={
            "routes": site.routes(),
            "middleware": [Middleware(Doors)],
            "docs_url": None,
            "redoc_url": None,
            "openapi_url": None,
        },
    )


def calm(page: gr.Blocks) -> None:
    """Let Gradio's queue look for work less often: 800 looks a second took a twentieth of a core from an idle page.

    Each look takes the interpreter from the engine. So does summing up its last events with pandas after each of them,
    for a monitoring page that is off.
    """
    page._queue.sleep_when_free = 0.05  # seconds: what a press of Run may wait
    page._queue.progress_update_sleep_when_free = 1.0  # for gr.Progress, which the page does not use
    page._queue.ANAYLTICS_CACHE_FREQUENCY = sys.maxsize  # events between two such sums


def say(sentence: str) -> None:
    """A line for whoever started the server."""
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def check_free(host: str, port: int) -> None:
    """Raise ParamError where nothing can listen; asked first, since Gradio would answer with a stack trace."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise ParamError(
            f"cannot serve on {host}:{port}: {(error.strerror or str(error)).lower()}; choose another --host or --port"
        ) from None
