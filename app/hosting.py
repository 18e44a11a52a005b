"""Lines of a stream that are not the player's: the page around it reads them."""

from __future__ import annotations

import json
from typing import Any

from viz.stream import play as stream

from .limits import LIMITS
from .trace_store import new_id

EVICTED = (
    f"Your oldest run made room for this one: of each visitor {LIMITS.stored_runs_each} are kept, and "
    f"{LIMITS.stored_bytes_each >> 20} MB. Download those that you want to keep."
)


def host(**told: Any) -> str:
    """A run's id, its address, its title, the step to open it at; or that a race is done."""
    return json.dumps({"kind": "host", **told}, ensure_ascii=True, separators=(",", ":")) + "\n"


def fault(sentence: str) -> str:
    """Why nothing was begun; its own id tells it from the same sentence before."""
    return host(run=new_id()) + stream.fault(spoken(sentence))


def spoken(error: object) -> str:
    """An error as a sentence of the page."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
