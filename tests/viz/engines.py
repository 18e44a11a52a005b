"""Real runs of every method on tiny models: one with a short sliding window, and one that sees the whole text."""

from __future__ import annotations

from functools import cache
from typing import Any

from decoding.engine import Engine
from decoding.types import Step, Trace
from tests.families import machine
from viz.cells import as_trace
from viz.palette import LIGHT, MEANINGS
from viz.run_state import RunState
from viz.stream import encode

PARAMS: dict[str, dict[str, Any]] = {
    "autoregressive": {},
    "jacobi": {"n": 6},
    "lookahead": {"W": 6, "N": 4, "G": 6},
    "draft_model": {"gamma": 4},
    "prompt_lookup": {},
    "suffix": {"alpha": 4.0},
    "ngrammys": {"k": 4, "w": 4},
    "token_recycling": {"k": 4, "tree": "grown", "size": 12},
    "medusa": {},
    "kangaroo": {"eta": 0.0, "gamma": 20},  # deeper than the window
    "eagle3": {"m": 12, "k": 4, "depth": 4},
    "dflash": {"form": "tree", "m": 12, "k": 4, "gamma": 4},
    "ouroboros": {"W": 4, "G": 4},
    "rest": {},
}
FILLS = [LIGHT[meaning.colour[1:]] for meaning in MEANINGS]
RUNS = [(family, method) for family in ("mistral", "llama") for method in PARAMS]
PROMPT = (3, 1, 4, 1, 5, 9, 2, 6) * 5


@cache
def _engine(family: str) -> Engine:
    return machine(family)


@cache
def run_state(family: str, method: str) -> RunState:
    """A run with a prompt that is read in chunks."""
    options: dict[str, Any] = {"params": PARAMS[method], "max_new_tokens": 20, "prefill_chunk": 16}
    trace: Trace = _engine(family).generate(PROMPT, method, record="full", end_tokens=(), **options).trace
    return RunState.of(trace)


def plain(value: encode.Encoded, state: RunState, step: Step) -> Any:
    """What plotly would draw."""
    return encode.resolve(value, state.texts, (), LIGHT, step)


def drawn(state: RunState, k: int, view: Any) -> list[dict[str, Any]]:
    """The traces of a view at a step, the base's attributes included."""
    step = state.steps[k]
    base, patch = (plain(value, state, step) for value in (view.base(state), view.frame(state, k)))
    parts = [
        {**before, **after, "marker": {**before.get("marker", {}), **after.get("marker", {})}}
        for before, after in zip(base["data"], patch.get("data", [{}] * len(base["data"])), strict=True)
    ]
    return [as_trace(part, FILLS) if "layer" in part else part for part in parts]
