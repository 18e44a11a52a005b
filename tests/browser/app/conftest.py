"""The real page on loopback, on the toy, in this process: tests can look at what a visitor leaves behind."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from app import server, ui
from app.middleware.origin import Owner
from app.state import House
from tests.app.conftest import CATALOG, TOY


@dataclass
class Served:
    """A running page and the house behind it."""

    address: str
    house: House

    def open(self, page: Any, query: str = "") -> Any:
        """Open it, and wait until a run is shown."""
        page.goto(f"{self.address}{query}")
        page.wait_for_function("globalThis.SpecscopeApp?.viewers?.player.record.last >= 0")
        return page


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """One server for all tests of the page."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    house = House(CATALOG, "toy")
    landing = house.recordings.landing
    assert landing is not None
    site = server.Site(house.answers.recording(landing.id))
    running = server.launch(ui.build(house), site, "127.0.0.1", port, house.tracker, Owner())
    assert house.runs.engines.ask(TOY).wait(60) is not None
    yield Served(f"http://127.0.0.1:{port}/", house)
    house.runs.close(5.0)
    running.stop()
