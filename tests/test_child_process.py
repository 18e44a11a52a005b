"""A child answers within its bounds or is killed, and never outlives its parent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.child_process import ChildProcess
from decoding.errors import TraceError
from tests import ROOT
from tests.tiers import crossed

CHILD = "tests.obedient_child"
MEMORY = 2**30
SECONDS = 30.0


@pytest.fixture
def child() -> Iterator[ChildProcess]:
    with ChildProcess(CHILD, MEMORY, TraceError) as child:
        yield child


def is_alive(pid: int) -> bool:
    """Return whether there is such a process; one that has ended and was not waited for counts as gone."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_gone_within(pid: int, seconds: float) -> bool:
    """Return whether a process ends in time."""
    end = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_alive(pid)


def test_one_child_answers_request_after_request(child: ChildProcess) -> None:
    """Starting one takes most of a second, so it stays; what is printed is no answer, and a refusal does not end it."""
    first, _ = child.ask({"do": "print"}, SECONDS)
    with pytest.raises(TraceError, match="this is refused"):
        child.ask({"do": "refuse"}, SECONDS)
    second, content = child.ask({"do": "nothing", "size": 300_000}, SECONDS)
    assert first["pid"] == second["pid"] and content == b"\0\n" * 300_000


def test_one_that_is_late_is_killed(child: ChildProcess) -> None:
    pid = child.ask({"do": "nothing"}, SECONDS)[0]["pid"]
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        child.ask({"do": "sleep", "seconds": 60}, 0.2)
    assert time.monotonic() - began < 5.0 and not child.is_running and is_gone_within(pid, 5.0)


@pytest.mark.parametrize("request_", [{"do": "exit"}, {"do": "allocate", "bytes": 2 * MEMORY}])
def test_one_that_ends_raises_an_error(child: ChildProcess, request_: dict[str, object]) -> None:
    if sys.platform == "win32" and "bytes" in request_:
        pytest.skip("memory is bounded by what Unix offers")
    with pytest.raises(EOFError):
        child.ask(request_, SECONDS)
    assert not child.is_running


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("how", "what"),
    crossed(
        [("os._exit(0)",), ("os.kill(os.getpid(), 9)",), ("sys.exit()",)],
        ['{"do": "sleep", "seconds": 60}, 60', '{"do": "hold"}, 1'],
    ),
)
def test_one_does_not_outlive_its_parent(how: str, what: str) -> None:
    """Nobody is there to kill it, and it is busy; DuckDB's parser even holds the interpreter meanwhile."""
    code = f"""
import os, sys, threading, time
from analysis.child_process import ChildProcess
from decoding.errors import TraceError
child = ChildProcess({CHILD!r}, {MEMORY}, TraceError)
print(child.ask({{"do": "nothing"}}, 30)[0]["pid"], flush=True)
threading.Thread(target=child.ask, args=({what}), daemon=True).start()
time.sleep(0.3)
{how}
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    assert is_gone_within(int(done.stdout), 5.0)


def test_one_that_nobody_holds_ends() -> None:
    child = ChildProcess(CHILD, MEMORY, TraceError)
    pid = child.ask({"do": "nothing"}, SECONDS)[0]["pid"]
    del child
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
