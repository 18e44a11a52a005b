"""Prevents Gradio from storing state of its visitors.

Gradio stores the last value of every control for each session, and the events that no client has fetched. On this page
an event carries everything that it needs, so a session's state is dropped with its request; unfetched events are
dropped after some seconds.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import gradio as gr
from gradio.state_holder import SessionState, StateHolder

from . import malloc
from .limits import LIMITS
from .middleware.session_tracker import SessionTracker

_log = logging.getLogger(__name__)
_PAUSE = 1.0  # seconds between two sweeps
_TRIM = 10  # sweeps between two calls of malloc_trim


class RequestState(SessionState):
    """A session state that lives for one request."""

    def __init__(self, blocks: gr.Blocks) -> None:  # not super().__init__, which describes every component
        self.blocks_config = blocks.default_config
        self.config_values: dict[int, Any] = {}
        self.state_data: dict[int, Any] = {}
        self.is_closed = False
        self._changed: dict[int, Any] = {}

    def __getitem__(self, key: int) -> Any:
        return self._changed.get(key, self.blocks_config.blocks[key])

    def __setitem__(self, key: int, value: Any) -> None:
        self._changed[key] = value

    def __contains__(self, key: int) -> bool:
        return key in self.blocks_config.blocks

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: Any) -> None:
        pass


class StatelessHolder(StateHolder):
    """Creates a state for each request and stores none."""

    def __getitem__(self, session_id: str) -> SessionState:
        return RequestState(self.blocks)

    def __contains__(self, session_id: str) -> bool:
        return False


def disable_session_state(page: gr.Blocks) -> None:
    """Replace the state holder of `page.app`, which must be the application that is served."""
    holder = StatelessHolder()  # type: ignore[no-untyped-call]
    holder.set_blocks(page)
    page.app.state_holder = holder


def poll_less(page: gr.Blocks) -> None:
    """Make Gradio's queue poll less often: 800 polls per second took a twentieth of a core from an idle page.

    Each poll takes the interpreter from the engine. So does the pandas summary of past events after each event, for a
    monitoring page that is off.
    """
    page._queue.sleep_when_free = 0.05  # seconds: what a press of Run may wait
    page._queue.progress_update_sleep_when_free = 1.0  # for gr.Progress, which the page does not use
    page._queue.ANAYLTICS_CACHE_FREQUENCY = sys.maxsize  # events between two such summaries
    page._queue.ANALYTICS_MAX_EVENTS = 1  # that are stored for them


async def sweep(page: gr.Blocks, tracker: SessionTracker) -> None:
    """While the server runs, drop the events of sessions that left without fetching them."""
    sweeps = 0
    while True:
        await asyncio.sleep(_PAUSE)
        try:
            sweep_once(page, tracker)
        except Exception:  # go on: without sweeps memory would fill
            _log.exception("a sweep failed")
        sweeps += 1
        if sweeps % _TRIM == 0:
            await asyncio.to_thread(malloc.trim)


def sweep_once(page: gr.Blocks, tracker: SessionTracker) -> None:
    """Drop them once."""
    queue = page._queue
    running = {event.session_hash for event in queue.event_ids_to_events.values()}
    stored = {*queue.pending_messages_per_session, *queue.pending_event_ids_session}
    for session in stored - running:
        if tracker.away(session) > LIMITS.unread_seconds:
            queue.pending_messages_per_session.pop(session, None)
            queue.pending_event_ids_session.pop(session, None)
    for event_id in [name for name, iterator in page.app.iterators.items() if iterator is None]:
        if event_id not in queue.event_ids_to_events:
            page.app.iterators.pop(event_id, None)
    tracker.sweep()
