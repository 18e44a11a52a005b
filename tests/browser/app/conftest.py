"""The real page on loopback, on the toy, in this process: tests can look at what a visitor leaves behind."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import pytest

from app import ui
from app.jobs.recorded_race import opening
from app.server import serving as server
from app.server.middleware.origin import Owner
from app.state import AppState
from tests.app.conftest import CATALOG, TOY


@dataclass
class Served:
    """A running page and its application state."""

    address: str
    app_state: AppState

    def open(self, page: Any, query: str = "", *, form: bool = True) -> Any:
        """Open it past its opening race, with the form unfolded, and wait until a run is shown."""
        if not parse_qs(query.removeprefix("?")).keys() - {"__theme"}:
            landing = self.app_state.recordings.landing
            assert landing is not None
            query = f"{query or '?'}&run={landing.id}"
        with page.expect_response(lambda response: "/run/predict" in response.url):  # which fills the form
            self.land(page, query)
        if form:
            page.evaluate("SpecscopeApp.shown.viewer.fold.set(false)")
        return page

    def land(self, page: Any, query: str = "") -> Any:
        """Open it as a visitor does, and wait until a run is there."""
        page.goto(f"{self.address}{query}")
        page.wait_for_function("globalThis.SpecscopeApp?.shown.viewer?.player.record.last >= 0")
        return page


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """Yield one server for all tests of the page."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app_state = AppState(CATALOG, "toy")
    landing = app_state.recordings.landing
    assert landing is not None
    site = server.Site(app_state.calls.recording_lines(landing.id), opening(app_state.recordings))
    running = server.Running(ui.build(app_state), site, app_state.tracker, Owner()).start("127.0.0.1", port)
    assert app_state.jobs.models.request(TOY).wait(60) is not None
    yield Served(f"http://127.0.0.1:{port}/", app_state)
    app_state.jobs.close(5.0)
    running.stop()
