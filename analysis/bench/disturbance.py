"""Detects other processes on the cores during a measurement, which make its times unreliable."""

from __future__ import annotations

import os
import time
from pathlib import Path

_MOST = 0.1  # of the cores' time
_PROC = Path("/proc")


class Disturbance:
    """Compares the time that all processes spent on the cores with that of this one and of `helper`, from now on."""

    def __init__(self, helper: int | None = None) -> None:
        self._helper = helper  # the id of a process that works for this one
        self._begin = self._read()

    @property
    def disturbed(self) -> bool | None:
        """Return whether other processes took more than a tenth of the cores' time; None if the system does not
        tell.

        The system counts in whole ticks on each core, so that one tick a core is no sign of them.
        """
        begin, end = self._begin, self._read()
        if begin is None or end is None or end[0] <= begin[0]:
            return None
        wall, busy, ours = (after - before for before, after in zip(begin, end, strict=True))
        return busy - ours > (_MOST * wall + 1 / os.sysconf("SC_CLK_TCK")) * (os.cpu_count() or 1)

    def _read(self) -> tuple[float, float, float] | None:
        """Return seconds: by the clock, of all cores at work or taken by a host, and of this process and its helper."""
        try:
            first = (_PROC / "stat").read_text().split("\n", 1)[0]
            other = (_PROC / f"{self._helper}/stat").read_text() if self._helper else ""
        except OSError:  # not Linux, or the helper has ended
            return None
        user, nice, system, _idle, _waiting, interrupts, soft, stolen = map(int, first.split()[1:9])
        helper = other.rpartition(")")[2].split()[11:13]  # before it is its name, which may hold anything
        ticks = os.sysconf("SC_CLK_TCK")
        busy = (user + nice + system + interrupts + soft + stolen) / ticks
        return time.perf_counter(), busy, time.process_time() + sum(map(int, helper)) / ticks
