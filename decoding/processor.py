"""The name of this machine's processor, by which a record says where its times were measured."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

LONGEST = 80  # characters of a name in a record
_NOISE = re.compile(r"\((?:R|TM|C)\)|\bCPU\b|\bProcessor\b| @ .*", re.IGNORECASE)


@cache
def processor_name() -> str | None:
    """A short name, as "AMD EPYC"; None where the system gives none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        text = ""
    found = re.search(r"^model name\s*:(.*)$", text, re.MULTILINE)
    return shorten(found[1] if found else platform.processor() or platform.machine())


def shorten(name: str) -> str | None:
    """A processor's name without marks and clock rates, in printable characters; None if nothing is left."""
    plain = "".join(letter if letter.isprintable() else " " for letter in _NOISE.sub(" ", name))
    return " ".join(plain.split())[:LONGEST].strip() or None
