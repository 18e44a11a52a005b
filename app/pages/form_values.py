"""Sends all values of a form as one text, because Gradio is slow for events with many inputs (see `events`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from decoding.errors import ParamError
from decoding.trace.json_line import parse_object

from ..events import DECODES

_DEPTH = 2  # a list of values, some of which are lists
_COLLECT = "(...values) => JSON.stringify({ values })"


def on_click(
    button: gr.Button,
    controls: Sequence[gr.components.Component],
    start: Callable[..., Any],
    viewer: gr.HTML,
) -> Any:
    """When the button is pressed, collect the values of the controls and call `start` with them as one text."""
    form = gr.Textbox(visible=False)
    ready = button.click(None, list(controls), form, js=_COLLECT, api_visibility="private")
    return ready.then(start, form, viewer, **DECODES)


def parse_values(form: object, controls: Sequence[gr.components.Component]) -> dict[Any, Any]:
    """Parse the text that `on_click` sends. It is untrusted: the caller must check each value."""
    fields = parse_object(form.encode(errors="replace"), "the form", _DEPTH) if isinstance(form, str) else {}
    values = fields.get("values")
    if not isinstance(values, list) or len(values) != len(controls):
        raise ParamError("the form does not match this server: reload the page")
    return dict(zip(controls, values, strict=True))
