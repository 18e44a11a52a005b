"""Gives the Python of a server clocks that a test moves: Python imports a module of this name before anything else.

The first number of the file is added to the wall clock, the second to the monotonic one, both in seconds. What the
system waits for by itself goes on by its own clocks, as on a machine that wakes up.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

_CLOCKS = {"time": (time.time, 0), "monotonic": (time.monotonic, 8), "perf_counter": (time.perf_counter, 8)}


def _moved(clock: Callable[[], float], offsets: mmap.mmap, at: int) -> Callable[[], float]:
    return lambda: clock() + float(struct.unpack_from("d", offsets, at)[0])


if "SPECSCOPE_CLOCKS" in os.environ:
    with Path(os.environ["SPECSCOPE_CLOCKS"]).open("r+b") as file:
        _offsets = mmap.mmap(file.fileno(), 16)
    for _name, (_clock, _at) in _CLOCKS.items():
        setattr(time, _name, _moved(_clock, _offsets, _at))
    time.time_ns = lambda: int(time.time() * 1e9)
    time.monotonic_ns = lambda: int(time.monotonic() * 1e9)
    time.perf_counter_ns = lambda: int(time.perf_counter() * 1e9)
