"""Returns free memory to the system.

glibc keeps an arena for each of many threads, and freed memory stays there in fragments: after 900 cancelled runs the
process held a fifth more than it used. With two arenas it stays flat.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

_ARENA_MAX = -8  # mallopt's parameter M_ARENA_MAX
_ARENAS = 2


def limit_arenas() -> None:
    """Limit the number of arenas; call it before threads start."""
    _glibc("mallopt", _ARENA_MAX, _ARENAS)


def trim() -> None:
    """Return free memory now."""
    _glibc("malloc_trim", 0)


def _glibc(function: str, *numbers: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            getattr(ctypes.CDLL("libc.so.6"), function)(*numbers)
