"""The name of this machine's processor, which a record contains because times depend on it."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

LONGEST = 80  # characters of a name in a record
_NOISE = re.compile(r"\((?:R|TM|C)\)|\bCPU\b|\bProcessor\b| @ .*", re.IGNORECASE)


@cache
def processor_name() -> str | None:
    """Return a short name, such as "AMD EPYC"; None if the system has none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        text = ""
    match = re.search(r"^model name\s*:(.*)$", text, re.MULTILINE)
    return shorten(match[1] if match else platform.processor() or platform.machine())


def shorten(name: str) -> str | None:
    """Remove marks, clock rates and unprintable characters from a processor's name; None if nothing is left."""
    plain = "".join(letter if letter.isprintable() else " " for letter in _NOISE.sub(" ", name))
    return " ".join(plain.split())[:LONGEST].strip() or None
