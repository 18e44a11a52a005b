"""Clocks that jump: the wall clock where it is set, the monotonic one where a machine that slept counts its sleep."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.server.limits import LIMITS
from tests.tiers import slow
from tools.page import Page, Visitor, serving

from .conftest import lines
from .test_watched import scrape

HOUR = 3600.0
FORWARD, BACK = 8 * HOUR, -HOUR
BUSY = 60.0  # seconds by which a busy machine may be late: little beside the jumps
LONG: dict[str, Any] = {"race_length": 200, "race_methods": ["autoregressive", "lookahead", "jacobi", "prompt_lookup"]}
_MODULES = Path(__file__).with_name("clocks")


class Clocks:
    """The server's clocks, in a file that both processes map."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.write_bytes(bytes(16))

    def set(self, wall: float) -> None:
        """Set the wall clock so many seconds ahead of the machine's own."""
        self._write(0, wall)

    def sleep(self, seconds: float) -> None:
        """Move the monotonic clock ahead, for good: it never goes back."""
        self._write(8, seconds)

    def _write(self, at: int, seconds: float) -> None:
        with self.file.open("r+b") as file:
            file.seek(at)
            file.write(struct.pack("d", seconds))


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> Clocks:
    return Clocks(tmp_path_factory.mktemp("clocks") / "offsets")


@pytest.fixture(scope="module")
def page(clocks: Clocks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    pytest.importorskip("prometheus_client")
    log = tmp_path_factory.mktemp("clocks") / "log"
    environment = {"PYTHONPATH": str(_MODULES), "SPECSCOPE_CLOCKS": str(clocks.file)}
    with serving(log, "--model", "pocket", "--metrics", "--api", **environment) as running:
        running.visitor().run(run_length=8)  # the model is loaded
        yield running


@pytest.fixture(autouse=True)
def at_rest(page: Page, clocks: Clocks) -> Iterator[None]:
    """Leave nothing running, and no error in the log."""
    clocks.set(wall=0)
    yield
    assert page.visitor().ask("GET", "/healthz").json()["waiting"] == 0
    assert " error " not in page.log.read_text()


class Race:
    """A race of some seconds, begun and read up to its first steps."""

    def __init__(self, visitor: Visitor, **changes: Any) -> None:
        assert visitor.join("race-go", **LONG | changes).status == 200
        self.stream, self._read = visitor.stream(), list[dict[str, Any]]()
        for message in self.stream:
            self._read.append(message)
            if '"kind":"step"' in str(message.get("output")):
                break

    def finishes(self) -> list[str]:
        """Read the rest, and return why each of its runs ended."""
        text = Visitor.text([*self._read, *self.stream])
        return [each["summary"]["finish"] for each in lines(text) if each["kind"] == "end"]


def is_served(visitor: Visitor) -> None:
    got = lines(visitor.run(run_method="autoregressive", run_length=24))
    assert got[-1]["kind"] == "check" and got[-1]["check"]["exact"] == 24


def wait_for(page: Page, what: str) -> None:
    """Wait until the server has a job of that kind."""
    until = time.monotonic() + 30
    while page.visitor().ask("GET", "/healthz").json()[what] == 0:
        assert time.monotonic() < until
        time.sleep(0.02)


@slow  # a server of its own
@pytest.mark.parametrize("jump", [FORWARD, BACK], ids=["forward", "back"])
def test_a_wall_clock_that_is_set_changes_nothing(page: Page, clocks: Clocks, jump: float) -> None:
    """A race goes on to its end, who waits for it gets a turn after a wait that is no hour, and stored runs open."""
    stored = page.visitor().program("/v1/decode", {"prompt": "The tide", "max_new_tokens": 4}).json()["id"]
    before, begin, race = scrape(page), time.monotonic(), Race(page.visitor())
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(is_served, page.visitor("127.0.0.2"))
        wait_for(page, "waiting")
        clocks.set(wall=jump)
        assert set(race.finishes()) <= {"length", "end_of_text"}
        turn.result(60)
    assert "lines" in page.visitor().call("open_recording", stored).json()
    after = scrape(page)
    waited, turns = (
        after[name] - before[name] for name in ("specscope_wait_seconds_sum", "specscope_wait_seconds_count")
    )
    assert turns == 2 and 0 < waited <= time.monotonic() - begin


@slow  # a server of its own
def test_after_a_sleep_the_next_visitor_is_served(page: Page, clocks: Clocks) -> None:
    """The time of what went on is up; who waited for it is served, and so is everybody after that."""
    race = Race(page.visitor())
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(is_served, page.visitor("127.0.0.2"))
        wait_for(page, "waiting")
        clocks.sleep(FORWARD)
        assert "time" in race.finishes()
        turn.result(60)
    is_served(page.visitor())
    assert page.visitor().program("/v1/decode", {"prompt": "The tide", "max_new_tokens": 4}).status == 200


@slow  # it waits for the limit
@pytest.mark.parametrize("jump", [FORWARD, BACK], ids=["forward", "back"])
def test_a_limit_of_time_holds_when_the_wall_clock_is_set(page: Page, clocks: Clocks, jump: float) -> None:
    """A head that does not end is waited for as long as ever."""
    with socket.create_connection(("127.0.0.1", page.port)) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\n")
        begin = time.monotonic()
        clocks.set(wall=jump)
        line.settimeout(LIMITS.head_seconds + BUSY)
        line.recv(1_000)
        assert LIMITS.head_seconds - 1 <= time.monotonic() - begin < LIMITS.head_seconds + BUSY
