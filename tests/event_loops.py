"""Event loops that Gradio leaves behind where a page is built inside the process of the tests."""

from __future__ import annotations

import asyncio
import gc
import warnings


def discard_event_loops() -> None:
    """Collect them now: unclosed as they are, they would fail whichever test runs when the collector finds them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.set_event_loop(None)  # the last one that Gradio set
        gc.collect()
