"""Lines of a stream that are not the player's: the page around it reads them."""

from __future__ import annotations

import json
from typing import Any


def host(**told: Any) -> str:
    """A run's id, its address, its title, the step to open it at; or that a race is done."""
    return json.dumps({"kind": "host", **told}, ensure_ascii=True, separators=(",", ":")) + "\n"
