"""A draft model on the screen: a chain, and the drafter's confidence in it."""

from __future__ import annotations

from ..boards.confidence import ConfidenceBoard, unsure
from .base import Screen
from .stages import draft_model as on_stage
from .stages.draft_model import confidence_of, params_of

_BOARD = ConfidenceBoard(
    label="Confidence of the drafter",
    gamma=lambda header: params_of(header).gamma,
    limit=lambda header: params_of(header).threshold,
    confidence=confidence_of,
    why_stopped=lambda header, step: unsure(confidence_of(step), params_of(header).threshold),
)
SCREEN = Screen(
    chain=True,
    origin=lambda run, step: " by the drafter",
    pool=_BOARD.picture(),
    stage=on_stage.STAGE,
    depth=_BOARD.gamma,
    weights=_BOARD.weights,
    notes=_BOARD.notes,
)
