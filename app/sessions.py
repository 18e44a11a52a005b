"""What Gradio keeps of its visitors: nothing.

Gradio stores for each tab the last value of every control, as it was sent, and what nobody fetched of a run's lines.
Here a form sends all that an event needs, and lines that nobody fetches are let go.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import gradio as gr
from gradio.state_holder import SessionState, StateHolder

from . import memory
from .gate.presence import Presence
from .limits import LIMITS

_log = logging.getLogger(__name__)
_LOOK = 1.0  # seconds between two looks for what nobody fetches
_TRIM = 10  # looks between two times that memory is given back


class Passing(SessionState):
    """The state of one request: gone when it is answered."""

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


class Forgetful(StateHolder):
    """Makes a state for each request, and keeps none."""

    def __getitem__(self, session_id: str) -> SessionState:
        return Passing(self.blocks)

    def __contains__(self, session_id: str) -> bool:
        return False


def forget(page: gr.Blocks) -> None:
    """Have Gradio keep no state; `page.app` must be the application that is served."""
    holder = Forgetful()  # type: ignore[no-untyped-call]
    holder.set_blocks(page)
    page.app.state_holder = holder


def calm(page: gr.Blocks) -> None:
    """Let Gradio's queue look for work less often: 800 looks a second took a twentieth of a core from an idle page.

    Each look takes the interpreter from the engine. So does summing up its last events with pandas after each of them,
    for a monitoring page that is off.
    """
    page._queue.sleep_when_free = 0.05  # seconds: what a press of Run may wait
    page._queue.progress_update_sleep_when_free = 1.0  # for gr.Progress, which the page does not use
    page._queue.ANAYLTICS_CACHE_FREQUENCY = sys.maxsize  # events between two such sums
    page._queue.ANALYTICS_MAX_EVENTS = 1  # that are kept for them


async def sweep(page: gr.Blocks, presence: Presence) -> None:
    """Let go, as long as the server runs, of what Gradio keeps for tabs that have left without fetching it."""
    looks = 0
    while True:
        await asyncio.sleep(_LOOK)
        try:
            sweep_once(page, presence)
        except Exception:  # without sweeping memory would fill: the next look may find another state
            _log.exception("a sweep failed")
        looks += 1
        if looks % _TRIM == 0:
            await asyncio.to_thread(memory.give_back)


def sweep_once(page: gr.Blocks, presence: Presence) -> None:
    """One look."""
    queue = page._queue
    going = {event.session_hash for event in queue.event_ids_to_events.values()}
    kept = {*queue.pending_messages_per_session, *queue.pending_event_ids_session}
    for session in kept - going:
        if presence.away(session) > LIMITS.unread_seconds:
            queue.pending_messages_per_session.pop(session, None)
            queue.pending_event_ids_session.pop(session, None)
    for event_id in [name for name, iterator in page.app.iterators.items() if iterator is None]:
        if event_id not in queue.event_ids_to_events:
            page.app.iterators.pop(event_id, None)
    presence.sweep()
