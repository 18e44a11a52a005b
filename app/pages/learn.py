"""The Learn tab: lessons beside their own player. One component, which its script fills."""

from __future__ import annotations

import gradio as gr

from ..state import AppState
from .server_calls import ServerFunction, answering
from .viewer import drawn


def build(app_state: AppState) -> gr.HTML:
    """Create the page; the caller renders it."""
    lessons = app_state.lessons
    return drawn(
        "learn",
        functions(app_state),
        '<div class="app-learn-page"></div>',
        lessons=lessons.contents(),
        glossary=dict(lessons.glossary),
    )


def functions(app_state: AppState) -> list[ServerFunction]:
    """Return plain functions, under the names that the script uses."""
    lesson = answering("learn_lesson", lambda asked: {"lesson": app_state.lessons.lesson(asked)})
    return [lesson, *app_state.calls.functions()]
