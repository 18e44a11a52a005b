"""The page under a path, through a proxy that takes the path away, as docs/hosting.md configures nginx and Caddy."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from .conftest import Served

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
PREFIX = "/models/scope"


@pytest.fixture
def proxy(served: Served) -> Iterator[str]:
    """Yield the page's address behind a proxy, which answers nothing outside the path."""
    upstream = urlsplit(served.address).netloc

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(f"{PREFIX}/"):
                # Browsers ask every site for its icon there; the page's own requests may not.
                self.send_response(204 if self.path == "/favicon.ico" else 404)
                self.end_headers()
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            with contextlib.closing(http.client.HTTPConnection(upstream, timeout=60)) as line:
                line.request(self.command, self.path.removeprefix(PREFIX), body or None, dict(self.headers))
                with line.getresponse() as answer:
                    self.send_response(answer.status)
                    for name, value in answer.getheaders():
                        if name.lower() not in ("transfer-encoding", "connection", "date"):
                            self.send_header(name, value)
                    self.send_header("Connection", "close")
                    self.end_headers()
                    while piece := answer.read1():
                        self.wfile.write(piece)
                        self.wfile.flush()

        do_POST = do_GET

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # the browser has left
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}{PREFIX}/"
    server.shutdown()
    server.server_close()


@pytest.mark.slow  # some seconds in a browser
def test_the_page_runs_under_a_path(served: Served, proxy: str, new_page: Callable[..., Any]) -> None:
    """Every file and request is found from the browser's address; `new_page` allows no failed one."""
    page = Served(proxy, served.app_state).open(new_page())
    page.locator("#run-go").click()
    page.wait_for_function("/[?&]run=[\\w-]{22}/.test(location.search)")
    assert page.evaluate("location.pathname") == f"{PREFIX}/"
    page.wait_for_function("globalThis.SpecscopeApp.shown.viewer.player.record.summary !== null")
