"""Whether others held the cores while something was measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analysis.bench import disturbance
from analysis.bench.disturbance import Disturbance


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def _stats(folder: Path, busy: int, helper: int = 0) -> None:
    (folder / "stat").write_text(f"cpu  {busy} 0 0 999999 0 0 0 0 0 0\ncpu0 1 2 3\n")
    (folder / "7").mkdir(exist_ok=True)
    (folder / "7" / "stat").write_text(f"7 (a (b) c) R 1 2 3 4 5 6 7 8 9 10 {helper} 0 0 0\n")


@pytest.mark.parametrize(
    ("busy", "helper", "named", "disturbed"),
    [
        (0, 0, None, False),
        (os.cpu_count() or 1, 0, None, False),  # a tick of each core: what the system cannot tell from none
        (10**6, 0, None, True),
        (10**6, 10**6, 7, False),
        (10**6, 10**6, None, True),
    ],
)
def test_the_time_of_others_counts(  # noqa: PLR0917
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: int, helper: int, named: int | None, disturbed: bool
) -> None:
    """Not that of this process, nor of the one that works for it."""
    monkeypatch.setattr(disturbance, "_PROC", tmp_path)
    _stats(tmp_path, busy=0)
    watched = Disturbance(named)
    _spin(0.01)
    _stats(tmp_path, busy, helper)
    assert watched.disturbed is disturbed


def test_a_system_that_does_not_say_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not said to be undisturbed."""
    monkeypatch.setattr(disturbance, "_PROC", tmp_path / "missing")
    assert Disturbance().disturbed is None


@pytest.mark.skipif(not Path("/proc/stat").is_file(), reason="needs Linux's own numbers")
def test_a_busy_neighbour_is_noticed() -> None:
    """The real numbers of this system, with a process that does nothing but compute beside this one."""
    neighbour = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    )
    try:
        assert neighbour.stdout is not None and neighbour.stdout.readline()
        watched = Disturbance()
        _spin(0.5)
        assert watched.disturbed is True
    finally:
        neighbour.kill()
        neighbour.communicate()
