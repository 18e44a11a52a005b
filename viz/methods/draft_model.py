"""A draft model on the screen: a chain, and how sure the drafter was of it."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.draft_model import DraftModelPanel, DraftModelParams
from decoding.types import Header, Step

from ..boards import confidence
from ..panels import read_panel
from ..params import read_params
from ..run_state import RunState
from ..tables import Table
from ..view import Figure, Patch, Picture
from .base import Screen
from .stages import draft_model as on_stage


def _params(header: Header) -> DraftModelParams:
    return read_params(DraftModelParams, header)


def _confidence(step: Step) -> Sequence[float]:
    return confidence.shares(read_panel(DraftModelPanel, step.panel).get("confidence", []))


def base(run: RunState) -> Figure:
    """The bars without a step."""
    params = _params(run.header)
    return confidence.base("Confidence of the drafter", params.gamma, params.threshold)


def frame(run: RunState, k: int) -> Patch:
    """How sure the drafter was of each token that it wrote."""
    return confidence.frame(run.steps[k], *_chain(run, k))


def rows(run: RunState, k: int) -> Table:
    """The same as a table."""
    return confidence.table(run, k, *_chain(run, k))


def _chain(run: RunState, k: int) -> tuple[Sequence[float], float, str]:
    """How sure the drafter was of every token, the limit below which it stops, and why it stopped."""
    sure, limit = _confidence(run.steps[k]), _params(run.header).threshold
    return sure, limit, confidence.why_stopped(sure, limit)


SCREEN = Screen(
    chain=True,
    origin=lambda run, step: " by the drafter",
    pool=Picture(base, frame, rows),
    stage=on_stage.STAGE,
    depth=lambda header: _params(header).gamma,
    weights=lambda step, guesses: confidence.weights(step, guesses, _confidence(step)),
    notes=lambda run, step, guesses: confidence.notes(guesses, _confidence(step), _params(run.header).threshold),
)
