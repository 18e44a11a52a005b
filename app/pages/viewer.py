"""The components that show runs: constant templates into which the page's scripts draw.

The value of a component is the text of a run's lines, which only grows. No token text passes through a template:
scripts insert it as text. The components are not subclasses of gr.HTML: Gradio would write a stub file for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from ..server.limits import LIMITS
from ..state import AppState
from .page_script import once_loaded
from .server_calls import ServerFunction


def viewer(app_state: AppState) -> gr.HTML:
    """Create the player of one run, with the gallery, the upload of a trace, and downloads."""
    landing = app_state.recordings.landing
    return drawn(
        "viewer",
        app_state.calls.functions(),
        '<div class="app-viewer"></div>',
        ("race", "fill", "again", "branch"),
        gallery=app_state.recordings.gallery(),
        landing=landing.id if landing else "",
        largest=LIMITS.upload_bytes,
        live=not app_state.replay_only,
    )


def race_viewer(app_state: AppState) -> gr.HTML:
    """Create the players of a race, side by side."""
    return drawn("race", app_state.calls.functions(), '<div class="app-race"></div>')


def conversation(elem_id: str) -> gr.HTML:
    """Create the viewer of a conversation's turns. Its value is their JSON, which events send back."""
    return _without_postprocess(
        gr.HTML(
            "[]",
            html_template="<div></div>",
            js_on_load=once_loaded("SpecscopeApp.chat(element, { props, watch });"),
            apply_default_css=False,
            elem_id=elem_id,
        )
    )


def drawn(
    name: str,
    functions: list[ServerFunction],
    template: str = "<div></div>",
    acts: Sequence[str] = (),
    **props: Any,
) -> gr.HTML:
    """Create a component that the page's script of this name draws; the caller renders it.

    The script calls the `functions` of the server, and triggers the component's `acts`: events that bring an address.
    """
    events = "".join(f", {act}: (address) => trigger('{act}', {{ address }})" for act in acts)
    return _without_postprocess(
        gr.HTML(
            html_template=template,
            js_on_load=once_loaded(f"SpecscopeApp.{name}(element, {{ props, server, watch{events} }});"),
            apply_default_css=False,
            server_functions=functions,
            elem_id=name if name == "viewer" else f"{name}-viewer",
            render=False,
            **props,
        )
    )


def _without_postprocess(component: gr.HTML) -> gr.HTML:
    """Make a component send its values unchanged: they are not markup, so Gradio need not parse them."""
    component.postprocess = lambda value: value  # type: ignore[method-assign]
    return component
