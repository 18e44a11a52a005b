"""How Gradio handles the page's events.

It tells each component on which progress is shown, and each input, how an event goes on, and copies all that it knows
of the component for that. The page shows progress itself, so no component is told: the hundred that a page's address
may change once took ten milliseconds of the browser's at every update of a run.

Values reach handlers as they were sent: Gradio's own checks answer with an error of the server's.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import gradio as gr

from .limits import LIMITS

_log = logging.getLogger(__name__)
_QUIETLY: dict[str, Any] = {
    "show_progress": "hidden",
    "show_progress_on": [],
    "api_visibility": "private",
    "preprocess": False,
}
# Events that only change the page skip the queue; all decoding shares one line, with two to spare for who just left.
QUICK: dict[str, Any] = {**_QUIETLY, "queue": False}
DECODES: dict[str, Any] = {
    **_QUIETLY,
    "concurrency_id": "decode",
    "concurrency_limit": LIMITS.waiting + 2,
    "trigger_mode": "once",
}


def tolerant(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a handler: invalid values, which the page itself never sends, change nothing."""

    @functools.wraps(handler)
    def handle(*values: Any) -> Any:
        try:
            return handler(*values)
        except Exception:
            _log.exception("an event changed nothing")
            return gr.skip()

    return handle
