"""How the server ends: at once, whatever goes on, and with nothing left of it."""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.server.serving import say
from tests.tiers import choose, slow
from tools import ROOT
from tools.page import API, Visitor, free_port, serving


@pytest.mark.slow  # the tests below end a server by each signal
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_runs_after_their_step_and_the_server_after_them(tmp_path: Path, number: signal.Signals) -> None:
    """A thread inside torch that outlives the interpreter aborts the process; a run must not be torn off either."""
    with serving(tmp_path / "log", "--model", "pocket") as page:
        tabs = [page.visitor() for _ in range(3)]
        assert [tab.join(run_length=256, run_method="ngrammys").status for tab in tabs] == [200] * 3
        got = tabs[0].stream()
        next(message for message in got if '"kind":"step"' in str(message.get("output")))
        with contextlib.closing(page.visitor().connect()) as beat:
            beat.request("GET", f"{API}/heartbeat/abc")
            beat.getresponse()
            begin = time.monotonic()
            page.process.send_signal(number)
            assert page.process.wait(60) == 0
            assert time.monotonic() - begin < 5
    log = page.log.read_text()
    assert "Traceback" not in log and "abort" not in log.lower() and "error" not in log.lower()


@slow  # it starts servers
@pytest.mark.parametrize("handler", choose([signal.SIG_DFL, signal.SIG_IGN], [signal.SIG_IGN]))
def test_a_closed_terminal_ends_the_server_unless_nohup_started_it(tmp_path: Path, handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGHUP, handler)  # which the server inherits, as from nohup
    try:
        with serving(tmp_path / "log", "--replay-only") as page:
            page.process.send_signal(signal.SIGHUP)
            if handler is signal.SIG_IGN:
                assert page.visitor().ask("GET", "/").status == 200
                page.process.terminate()
            assert page.process.wait(60) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@slow  # it starts servers
def test_a_page_without_a_temporary_folder_comes_up_and_ends_at_the_first_of_many_signals() -> None:
    """Gradio asks for the folder when it is imported, and a full or read-only disk has none."""
    code = (
        "import sys, tempfile; tempfile._candidate_tempdir_list = lambda: ['/proc/nothing']\n"
        "from app.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    port = free_port()
    argv = [sys.executable, "-c", code, "--replay-only", "--port", str(port)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            assert "Specscope is at" in process.stdout.readline()
            assert Visitor(port).ask("GET", "/?run=lookahead").status == 200
        finally:
            for _ in range(3):
                process.send_signal(signal.SIGINT)
        assert process.stderr.read() == (
            "specscope: no temporary folder can be written; name one with TMPDIR if something needs it\n"
        )
        assert process.wait(60) == 0


def test_a_server_that_nobody_listens_to_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As below `python -m app | head -1`: what it tells of a model that loads would end the thread with an error."""

    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    say("pocket is ready.")
