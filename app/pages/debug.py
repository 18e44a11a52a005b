"""The Debug page: run folders under filters and SQL. One component, which its script fills."""

from __future__ import annotations

import gradio as gr

from ..server.limits import LIMITS
from ..state import AppState
from .server_calls import ServerFunction, answering
from .viewer import drawn


def build(app_state: AppState) -> gr.HTML:
    """Create the page; the caller renders it."""
    return drawn(
        "debug",
        functions(app_state),
        '<div class="app-debug"></div>',
        largest=LIMITS.upload_bytes,
        live=not app_state.replay_only,
    )


def functions(app_state: AppState) -> list[ServerFunction]:
    """Return plain functions, under the names that the script uses."""

    def function(name: str) -> ServerFunction:
        return answering(f"debug_{name}", lambda asked: app_state.debug.call(name, asked))

    return [function(name) for name in ("open", "chart", "steps", "export", "bring", "play")]
