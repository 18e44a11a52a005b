"""Describes machines: this one's device and memory, and the one that a run was recorded on."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from decoding.processor import processor_name
from decoding.types import Header

_GPU = Path("/dev/nvidiactl")
_CONTAINER = Path("/sys/fs/cgroup/memory.max")  # "max" where nothing limits it


def device_of(named: str | None) -> str:
    """Return the kind of device that a model will run on, without torch: the named one, or a GPU if there is one."""
    return re.split("[:,]", named or ("cuda" if _GPU.exists() else "cpu"))[0]


def machine_memory() -> float:
    """Return the total memory of this machine or its container in bytes; 0 if the system does not say."""
    sizes = list[float]()
    with suppress(AttributeError, ValueError, OSError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ValueError, OSError):
        sizes.append(int(_CONTAINER.read_text()))
    return min(sizes, default=0.0)


def elsewhere(header: Header) -> str:
    """Say that a record's times were measured on another processor; empty if not, or if it names none."""
    if header.processor is None or header.processor == processor_name():
        return ""
    facts = [header.processor]
    if header.device != "cpu":
        facts.append(header.device[:40])
    if header.threads is not None:
        facts.append("1 thread" if header.threads == 1 else f"{header.threads} threads")
    return f"Recorded on another machine ({', '.join([*facts, header.dtype[:40]])})."
