"""The Debug page: run folders under filters and SQL. One component, which its script fills."""

from __future__ import annotations

from typing import Any

import gradio as gr

from ..server.limits import LIMITS
from ..state import AppState
from .server_calls import ServerAnswer, ServerFunction, answered


def build(app_state: AppState) -> gr.HTML:
    """Lay out the page."""
    return gr.HTML(
        html_template='<div class="app-debug"></div>',
        js_on_load="SpecscopeApp.debug(element, { props, server });",
        apply_default_css=False,
        server_functions=functions(app_state),
        elem_id="debug-viewer",
        largest=LIMITS.upload_bytes,
    )


def functions(app_state: AppState) -> list[ServerFunction]:
    """Plain functions, under the names that the script uses."""

    def debug_open(asked: Any) -> ServerAnswer:
        return answered(lambda: app_state.debug.call("open", asked))

    def debug_chart(asked: Any) -> ServerAnswer:
        return answered(lambda: app_state.debug.call("chart", asked))

    def debug_steps(asked: Any) -> ServerAnswer:
        return answered(lambda: app_state.debug.call("steps", asked))

    def debug_export(asked: Any) -> ServerAnswer:
        return answered(lambda: app_state.debug.call("export", asked))

    def debug_bring(asked: Any) -> ServerAnswer:
        return answered(lambda: app_state.debug.call("bring", asked))

    def debug_play(asked: Any) -> ServerAnswer:
        return answered(lambda: app_state.debug.call("play", asked))

    return [debug_open, debug_chart, debug_steps, debug_export, debug_bring, debug_play]
