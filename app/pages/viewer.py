"""The components that show runs: constant templates into which the page's scripts draw.

The value of a component is the text of a run's lines, which only grows. No token text passes through a template:
scripts insert it as text. The components are not subclasses of gr.HTML: Gradio would write a stub file for each.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from ..server.limits import LIMITS
from ..state import AppState


def viewer(app_state: AppState) -> gr.HTML:
    """The player of one run, with the gallery, the upload of a trace, and downloads; the caller renders it."""
    landing = app_state.recordings.landing
    return _without_postprocess(
        gr.HTML(
            html_template='<div class="app-viewer"></div>',
            js_on_load="SpecscopeApp.viewer(element, { props, server, watch, "
            "race: (address) => trigger('race', { address }), fill: (address) => trigger('fill', { address }), "
            "again: (address) => trigger('again', { address }), "
            "branch: (address) => trigger('branch', { address }) });",
            apply_default_css=False,
            server_functions=app_state.calls.functions(),
            elem_id="viewer",
            render=False,
            gallery=app_state.recordings.gallery(),
            landing=landing.id if landing else "",
            largest=LIMITS.upload_bytes,
            live=not app_state.replay_only,
        )
    )


def race_viewer(app_state: AppState) -> gr.HTML:
    """The players of a race, side by side; the caller renders them."""
    return _watching(app_state, "race", '<div class="app-race"></div>')


def conversation(elem_id: str) -> gr.HTML:
    """The turns of a conversation so far. Its value is their JSON, which events bring back."""
    return _without_postprocess(
        gr.HTML(
            "[]",
            html_template="<div></div>",
            js_on_load="SpecscopeApp.chat(element, { props, watch });",
            apply_default_css=False,
            elem_id=elem_id,
        )
    )


def doctor_viewer(app_state: AppState) -> gr.HTML:
    """What an examination finds; the caller renders it. Before the first one it takes no room."""
    return _watching(app_state, "doctor", "<div></div>")


def _watching(app_state: AppState, name: str, template: str) -> gr.HTML:
    """A component that one function of the page's scripts draws, and that asks for nothing by itself."""
    return _without_postprocess(
        gr.HTML(
            html_template=template,
            js_on_load=f"SpecscopeApp.{name}(element, {{ props, server, watch }});",
            apply_default_css=False,
            server_functions=app_state.calls.functions(),
            elem_id=f"{name}-viewer",
            render=False,
        )
    )


def landscape_viewer(app_state: AppState) -> gr.HTML:
    """The landscape of the run on the screen, with the button that has it measured; the caller renders it."""
    return _without_postprocess(
        gr.HTML(
            html_template="<div></div>",
            js_on_load="SpecscopeApp.landscape(element, { props, server, watch, "
            "measure: (address) => trigger('measure', { address }), end: () => trigger('end') });",
            apply_default_css=False,
            server_functions=app_state.calls.functions(),
            elem_id="landscape-viewer",
            render=False,
        )
    )


def _without_postprocess(component: gr.HTML) -> gr.HTML:
    """Make a component send its values unchanged: they are not markup, so Gradio need not parse them."""

    def identity(value: Any) -> Any:
        return value

    component.postprocess = identity  # type: ignore[method-assign]
    return component
