"""Kangaroo on the screen: a chain by the target's first layers, and their confidence in it."""

from __future__ import annotations

from decoding.types import Step

from ..boards.confidence import ConfidenceBoard
from ..run_state import RunState
from .base import Screen
from .stages import kangaroo as on_stage
from .stages.kangaroo import confidence_of, panel_of, params_of, why_stopped


def _origin(run: RunState, step: Step) -> str:
    panel = panel_of(step)
    layer, unsure = panel.get("exit_layer", 0), panel.get("stopped") == "unsure"
    by = f" by the first {'layer' if layer == 1 else f'{layer} layers'}" if layer else " by the early exit"
    why = why_stopped(run.header, step) if unsure else ""
    return by + (f" ({why[0].lower()}{why[1:]})" if why else "")


def _no_guess(run: RunState, step: Step) -> str:
    return "the prompt has to be read first" if panel_of(step).get("stopped") == "start" else ""


_BOARD = ConfidenceBoard(
    label="Confidence of the early exit",
    gamma=lambda header: params_of(header).gamma,
    limit=lambda header: params_of(header).eta,
    confidence=confidence_of,
    why_stopped=why_stopped,
)
SCREEN = Screen(
    chain=True,
    bandwidth_known=False,  # it runs layers of the target while it drafts
    sources={"exit": "token {0} of the early exit"},
    origin=_origin,
    no_guess=_no_guess,
    pool=_BOARD.picture(),
    stage=on_stage.STAGE,
    depth=_BOARD.gamma,
    weights=_BOARD.weights,
    notes=_BOARD.notes,
)
