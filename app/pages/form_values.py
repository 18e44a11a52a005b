"""What a form holds, as one value of the event that needs it.

An event of many inputs is slow for as long as it goes on: see `events`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from decoding.errors import ParamError
from decoding.trace.json_line import parse_object

from ..events import DECODES

_DEPTH = 2  # a list of values, some of which are lists
_GATHER = "(...values) => JSON.stringify({ values })"


def pressed(
    button: gr.Button,
    controls: Sequence[gr.components.Component],
    start: Callable[..., Any],
    viewer: gr.HTML,
) -> Any:
    """Have a button gather the controls, then start decoding with their values as one text."""
    form = gr.Textbox(visible=False)
    ready = button.click(None, list(controls), form, js=_GATHER, api_visibility="private")
    return ready.then(start, form, viewer, **DECODES)


def gathered(form: object, controls: Sequence[gr.components.Component]) -> dict[Any, Any]:
    """The controls' values out of such a text. Anyone may have written it: the values are still to be checked."""
    told = parse_object(form.encode(errors="replace"), "the form", _DEPTH) if isinstance(form, str) else {}
    values = told.get("values")
    if not isinstance(values, list) or len(values) != len(controls):
        raise ParamError("the form does not fit this server: load the page anew")
    return dict(zip(controls, values, strict=True))
