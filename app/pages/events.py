"""How Gradio handles the page's events.

By default Gradio sends the progress of an event to each of its inputs and outputs, and copies the component's
configuration for that: for the hundred outputs of the page's address this took ten milliseconds in the browser at each
update of a run. The page shows progress itself, so it is switched off.

Handlers get the values as they were sent: a value that fails Gradio's own checks would become a server error.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr

from ..server.limits import LIMITS

_log = logging.getLogger(__name__)
_NO_PROGRESS: dict[str, Any] = {
    "show_progress": "hidden",
    "show_progress_on": [],
    "api_visibility": "private",
    "preprocess": False,
}
# Events that only change the page skip Gradio's queue. All decoding shares one queue, with two places in reserve for
# runs whose visitors have just left.
QUICK: dict[str, Any] = {**_NO_PROGRESS, "queue": False}
DECODES: dict[str, Any] = {
    **_NO_PROGRESS,
    "concurrency_id": "decode",
    "concurrency_limit": LIMITS.waiting + 2,
    "trigger_mode": "once",
}


def event_address(event: gr.EventData) -> dict[str, str]:
    """The query of the address that an event of the page's scripts brings; it is untrusted."""
    sent = getattr(event, "address", "")
    return dict(parse_qsl(sent.removeprefix("?"))) if isinstance(sent, str) else {}


def tab_of(request: gr.Request) -> str:
    """Return the name of the browser's tab."""
    return str(request.session_hash)


def tolerant(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a handler so that invalid values, which the page itself never sends, change nothing."""

    @functools.wraps(handler)
    def handle(*values: Any) -> Any:
        try:
            return handler(*values)
        except Exception:
            _log.exception("an event handler failed")
            return gr.skip()

    return handle
