"""How Gradio handles the page's events.

It tells each component on which progress is shown, and each input, how an event goes on, and copies all that it knows
of the component for that. The page shows progress itself, so no component is told: the hundred that a page's address
may change once took ten milliseconds of the browser's at every update of a run.
"""

from __future__ import annotations

from typing import Any

from .limits import LIMITS

_QUIETLY: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
# Events that only change the page skip the queue; all decoding shares one line, with two to spare for who just left.
QUICK: dict[str, Any] = {**_QUIETLY, "queue": False}
DECODES: dict[str, Any] = {
    **_QUIETLY,
    "concurrency_id": "decode",
    "concurrency_limit": LIMITS.waiting + 2,
    "trigger_mode": "once",
}
