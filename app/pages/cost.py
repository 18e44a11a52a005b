"""The Cost tab: when speculation pays, by the cost of passes on measured machines. It computes in the browser."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from analysis.cost.grid import COUNTED, tokens_per_step

from ..state import AppState
from ..store.pass_costs import pass_costs
from ..store.run_costs import RunCosts
from .page_script import once_loaded
from .server_calls import ServerAnswer, ServerFunction, answering


def build(app_state: AppState) -> gr.HTML:
    """Lay out the page."""
    runs = RunCosts(app_state.recordings, app_state.lessons)
    return gr.HTML(
        html_template='<div class="app-cost-page"></div>',
        js_on_load=once_loaded("SpecscopeApp.cost(element, { props, server });"),
        apply_default_css=False,
        server_functions=functions(app_state, runs),
        elem_id="cost-viewer",
        curves=pass_costs(),
        written={method: tokens_per_step(method) for method in COUNTED},
        groups=runs.groups(),
        tree_runs=runs.of_trees(),
    )


def functions(app_state: AppState, runs: RunCosts) -> list[ServerFunction]:
    """Return plain functions, under the names that the script uses."""
    debug = [answering(f"debug_{name}", partial(_debug, app_state, name)) for name in ("costs", "play")]
    return [answering("cost_runs", runs.of), *debug, *app_state.calls.functions()]


def _debug(app_state: AppState, name: str, asked: Any) -> ServerAnswer:
    """Call the Debug tab's functions, which are created at the first call."""
    return app_state.debug.call(name, asked)
