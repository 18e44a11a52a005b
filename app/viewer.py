"""The components that show runs: constant templates into which the page's scripts draw.

A value is a run's lines, which only grow. No token ever passes through a template: scripts write texts as text.
These are no subclasses of gr.HTML: Gradio would write a stub file beside each.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from .limits import LIMITS
from .state import House


def viewer(house: House) -> gr.HTML:
    """A player for one run, with the recordings, a trace of one's own, and downloads around it; not placed yet."""
    landing = house.recordings.landing
    return _drawn_into(
        gr.HTML(
            html_template='<div class="app-viewer"></div>',
            js_on_load="SpecscopeApp.viewer(element, "
            "{ props, server, watch, race: (address) => trigger('race', { address }) });",
            apply_default_css=False,
            server_functions=house.answers.functions(),
            elem_id="viewer",
            render=False,
            gallery=house.recordings.gallery(),
            landing=landing.id if landing else "",
            largest=LIMITS.upload_bytes,
            races=not house.replay_only,
        )
    )


def race_viewer(house: House) -> gr.HTML:
    """Several runs side by side; not placed yet."""
    return _drawn_into(
        gr.HTML(
            html_template='<div class="app-race"></div>',
            js_on_load="SpecscopeApp.race(element, { props, server, watch });",
            apply_default_css=False,
            server_functions=house.answers.functions(),
            elem_id="race-viewer",
            render=False,
        )
    )


def _drawn_into(component: gr.HTML) -> gr.HTML:
    """Takes its values as they are: they are no markup, so Gradio need not search them for any."""

    def as_it_is(value: Any) -> Any:
        return value

    component.postprocess = as_it_is  # type: ignore[method-assign]
    return component
