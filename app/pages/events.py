"""How Gradio handles the page's events.

By default Gradio sends the progress of an event to each of its inputs and outputs, and copies the component's
configuration for that: for the hundred outputs of the page's address this took ten milliseconds in the browser at each
update of a run. The page shows progress itself, so it is switched off.

Handlers get the values as they were sent, of their controls' kinds (`server/control_values.py`): a value that fails
Gradio's own checks would become a server error.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import gradio as gr

from decoding.errors import SpecscopeError

from ..jobs.streaming import refusal_line, report_refusal
from ..server.limits import LIMITS
from ..state import AppState

if TYPE_CHECKING:
    from ..jobs.runner import Job

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
    """Return the query of that address."""
    return query_of(address_sent(event))


def address_sent(event: gr.EventData) -> str:
    """Return the address that an event of the page's scripts brings; it is untrusted."""
    sent = getattr(event, "address", "")
    return sent if isinstance(sent, str) else ""


def query_of(address: str) -> dict[str, str]:
    """Return the query of an address."""
    return dict(parse_qsl(address.removeprefix("?")))


def tab_of(request: gr.Request) -> str:
    """Return the name of the browser's tab."""
    return str(request.session_hash)


def start_job(app_state: AppState, make: Callable[[], Job], request: gr.Request) -> Iterator[str]:
    """Start the job that a visitor asks for, or say why there is none; yields the growing value of its viewer."""
    try:
        job = make()
    except SpecscopeError as error:
        report_refusal(error)
        yield refusal_line(str(error))
        return
    yield from app_state.jobs.start(job, tab_of(request))


def tolerant(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a handler so that names which are in no menu, and its own mistakes, change nothing on the page."""

    @functools.wraps(handler)
    def handle(*values: Any) -> Any:
        try:
            return handler(*values)
        except SpecscopeError:  # no error of this server, which its metrics would count
            return gr.skip()
        except Exception:
            _log.exception("an event handler failed")
            return gr.skip()

    return handle
