"""Memory that is free goes back to the system.

glibc keeps a heap for each of many threads, and what they free stays there in pieces: after 900 runs that were broken
off the process held half as much again as it used. With two heaps it holds what it uses.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

_ARENA_MAX = -8  # mallopt's name for the number of heaps
_HEAPS = 2


def few_heaps() -> None:
    """Before there are threads."""
    _glibc("mallopt", _ARENA_MAX, _HEAPS)


def give_back() -> None:
    """What is free now."""
    _glibc("malloc_trim", 0)


def _glibc(function: str, *numbers: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            getattr(ctypes.CDLL("libc.so.6"), function)(*numbers)
