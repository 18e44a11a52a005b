"""What the page says of the machine that a run was recorded on, where it is not the one that serves the page."""

from __future__ import annotations

from decoding.processor import processor_name
from decoding.types import Header


def elsewhere(header: Header) -> str:
    """A sentence, if a record's times were measured on another processor; empty if not, or if it names none."""
    if header.processor is None or header.processor == processor_name():
        return ""
    facts = [header.processor]
    if header.device != "cpu":
        facts.append(header.device[:40])
    if header.threads is not None:
        facts.append("1 thread" if header.threads == 1 else f"{header.threads} threads")
    return f"Recorded on another machine ({', '.join([*facts, header.dtype[:40]])})."
