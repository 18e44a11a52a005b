"""How the server ends: at once, whatever goes on, and with nothing left of it."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

import pytest

from tools.page import API, serving


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_runs_after_their_step_and_the_server_after_them(tmp_path: Path, number: signal.Signals) -> None:
    """A thread inside torch that outlives the interpreter aborts the process; a run must not be torn off either."""
    with serving(tmp_path / "log") as page:
        tabs = [page.visitor() for _ in range(3)]
        assert [tab.join(run_length=256, run_method="ngrammys").status for tab in tabs] == [200] * 3
        told = tabs[0].stream()
        next(message for message in told if '"kind":"step"' in str(message.get("output")))
        with contextlib.closing(page.visitor().connect()) as beat:
            beat.request("GET", f"{API}/heartbeat/abc")
            beat.getresponse()
            begin = time.monotonic()
            page.process.send_signal(number)
            assert page.process.wait(10) == 0
            assert time.monotonic() - begin < 5
    log = page.log.read_text()
    assert "Traceback" not in log and "abort" not in log.lower() and "error" not in log.lower()


def test_a_second_signal_changes_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "log", "--replay-only") as page:
        for _ in range(3):
            page.process.send_signal(signal.SIGINT)
        assert page.process.wait(10) == 0
    assert page.log.read_text() == ""
