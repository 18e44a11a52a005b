"""The Cost tab: when speculation pays, by the cost of passes on measured machines. It computes in the browser."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from analysis.cost.grid import COUNTED, tokens_per_step

from ..state import AppState
from ..store.pass_costs import pass_costs
from ..store.run_costs import RunCosts
from .server_calls import ServerAnswer, ServerFunction, answering
from .viewer import drawn


def build(app_state: AppState) -> gr.HTML:
    """Create the page; the caller renders it."""
    runs = RunCosts(app_state.recordings, app_state.lessons)
    return drawn(
        "cost",
        functions(app_state, runs),
        '<div class="app-cost-page"></div>',
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
