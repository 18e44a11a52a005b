"""Sends all values of a form as one text, because Gradio is slow for events with many inputs (see `events`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gradio as gr

from decoding.errors import ParamError
from decoding.trace.json_line import parse_object

from ..server.control_values import check_of
from .events import DECODES, QUICK, address_sent, query_of, tolerant

_DEPTH = 2  # a list of values, some of which are lists
_MISFIT = "the form does not match this server: reload the page"
_COLLECT = "(...values) => JSON.stringify({ values })"


def on_click(
    buttons: Sequence[gr.Button],
    controls: Sequence[gr.components.Component],
    start: Callable[..., Any],
    viewer: gr.HTML,
) -> Any:
    """Collect the values of the controls when one of the buttons is pressed, and call `start` with them as one text."""
    form, ready = _collect(partial(gr.on, [button.click for button in buttons]), controls)
    return ready.then(start, form, viewer, **DECODES)


def on_choice(
    menu: gr.Dropdown,
    controls: Sequence[gr.components.Component],
    change: Callable[[dict[Any, Any]], Any],
    outputs: Sequence[gr.components.Component],
) -> None:
    """Call `change` with the values of the controls, by control, when a visitor chooses from the menu."""

    def changed(form: object) -> Any:
        return change(parse_values(form, controls))

    form, ready = _collect(menu.input, controls)
    ready.then(tolerant(changed), form, list(outputs), **QUICK)


def on_address(
    event: Callable[..., Any],
    controls: Sequence[gr.components.Component],
    change: Callable[[dict[Any, Any], dict[str, str]], Any],
    outputs: Sequence[gr.components.Component],
) -> None:
    """Call `change` with the values of the controls and the address's query when the page's scripts send an address."""
    address = gr.Textbox(visible=False)

    def changed(form: object) -> Any:
        given = parse_values(form, [*controls, address])
        return change(given, query_of(given[address] or ""))

    sent = event(tolerant(address_sent), None, address, **QUICK)
    form, ready = _collect(sent.then, [*controls, address])
    ready.then(tolerant(changed), form, list(outputs), **QUICK)


def _collect(event: Callable[..., Any], controls: Sequence[gr.components.Component]) -> tuple[gr.Textbox, Any]:
    """Have an event write the values of the controls into a text; returns that, and what happens next."""
    form = gr.Textbox(visible=False)
    return form, event(None, list(controls), form, js=_COLLECT, api_visibility="private")


def parse_values(form: object, controls: Sequence[gr.components.Component]) -> dict[Any, Any]:
    """Parse the text in which values are collected. Each is of its control's kind; the caller must check the rest."""
    fields = parse_object(form.encode(errors="replace"), "the form", _DEPTH) if isinstance(form, str) else {}
    values = fields.get("values")
    if not isinstance(values, list) or len(values) != len(controls):
        raise ParamError(_MISFIT)
    if not all(check_of(control)(value) for control, value in zip(controls, values, strict=True)):
        raise ParamError(_MISFIT)
    return dict(zip(controls, values, strict=True))
