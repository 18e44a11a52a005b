"""What the page knows of machines: this one's device, and another one that a run was recorded on."""

from __future__ import annotations

import re
from pathlib import Path

from decoding.processor import processor_name
from decoding.types import Header

_GPU = Path("/dev/nvidiactl")


def device_of(named: str | None) -> str:
    """Return the kind of device that a model will run on, without torch: the named one, or a GPU if there is one."""
    return re.split("[:,]", named or ("cuda" if _GPU.exists() else "cpu"))[0]


def elsewhere(header: Header) -> str:
    """Return a sentence, if a record's times were measured on another processor; empty if not, or if it names none."""
    if header.processor is None or header.processor == processor_name():
        return ""
    facts = [header.processor]
    if header.device != "cpu":
        facts.append(header.device[:40])
    if header.threads is not None:
        facts.append("1 thread" if header.threads == 1 else f"{header.threads} threads")
    return f"Recorded on another machine ({', '.join([*facts, header.dtype[:40]])})."
