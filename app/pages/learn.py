"""The Learn tab: lessons beside their own player. One component, which its script fills."""

from __future__ import annotations

import gradio as gr

from ..state import AppState
from .page_script import once_loaded
from .server_calls import ServerFunction, answering


def build(app_state: AppState) -> gr.HTML:
    """Lay out the page."""
    lessons = app_state.lessons
    return gr.HTML(
        html_template='<div class="app-learn-page"></div>',
        js_on_load=once_loaded("SpecscopeApp.learn(element, { props, server });"),
        apply_default_css=False,
        server_functions=functions(app_state),
        elem_id="learn-viewer",
        lessons=lessons.contents(),
        glossary=dict(lessons.glossary),
    )


def functions(app_state: AppState) -> list[ServerFunction]:
    """Return plain functions, under the names that the script uses."""
    lesson = answering("learn_lesson", lambda asked: {"lesson": app_state.lessons.lesson(asked)})
    return [lesson, *app_state.calls.functions()]
