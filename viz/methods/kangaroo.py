"""Kangaroo on the screen: a chain by the target's first layers, and how sure they were of it."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.kangaroo import KangarooPanel, KangarooParams
from decoding.types import Header, Step

from ..boards import confidence
from ..panels import read_panel
from ..params import read_params
from ..run_state import RunState
from ..tables import Table
from ..view import Figure, Patch, Picture
from .base import Screen
from .stages import kangaroo as on_stage


def _params(header: Header) -> KangarooParams:
    return read_params(KangarooParams, header)


def _panel(step: Step) -> KangarooPanel:
    return read_panel(KangarooPanel, step.panel)


def _confidence(step: Step) -> Sequence[float]:
    return confidence.shares(_panel(step).get("confidence", []))


def base(run: RunState) -> Figure:
    """The bars without a step."""
    params = _params(run.header)
    return confidence.base("Confidence of the early exit", params.gamma, params.eta)


def frame(run: RunState, k: int) -> Patch:
    """How sure the early exit was of each token that it wrote, and why it stopped."""
    return confidence.frame(run.steps[k], *_chain(run, k))


def rows(run: RunState, k: int) -> Table:
    """The same as a table."""
    return confidence.table(run, k, *_chain(run, k))


def _chain(run: RunState, k: int) -> tuple[Sequence[float], float, str]:
    """How sure the early exit was of every token, the limit below which it stops, and why it stopped."""
    step = run.steps[k]
    sure, limit = _confidence(step), _params(run.header).eta
    return sure, limit, on_stage.why_stopped(run.header, step)


def _origin(run: RunState, step: Step) -> str:
    layer, unsure = _panel(step).get("exit_layer", 0), _panel(step).get("stopped") == "unsure"
    by = f" by the first {'layer' if layer == 1 else f'{layer} layers'}" if layer else " by the early exit"
    why = on_stage.why_stopped(run.header, step) if unsure else ""
    return by + (f" ({why[0].lower()}{why[1:]})" if why else "")


def _no_guess(run: RunState, step: Step) -> str:
    return "the prompt has to be read first" if _panel(step).get("stopped") == "start" else ""


SCREEN = Screen(
    chain=True,
    bandwidth_known=False,  # it runs layers of the target while it drafts
    sources={"exit": "token {0} of the early exit"},
    origin=_origin,
    no_guess=_no_guess,
    pool=Picture(base, frame, rows),
    stage=on_stage.STAGE,
    depth=lambda header: _params(header).gamma,
    weights=lambda step, guesses: confidence.weights(step, guesses, _confidence(step)),
    notes=lambda run, step, guesses: confidence.notes(guesses, _confidence(step), _params(run.header).eta),
)
