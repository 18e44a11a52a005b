"""EAGLE-3 on the screen: the drafter's guesses by depth and by the product of their probabilities."""

from __future__ import annotations

from decoding.methods.eagle3 import Eagle3Params
from decoding.types import Header, Step

from ..params import params_reader
from ..run_state import RunState
from . import products
from .base import Screen
from .stages import eagle3 as on_stage
from .stages.features import why_nothing

params_of = params_reader(Eagle3Params)


def _depth(header: Header) -> int:
    params = params_of(header)
    return params.depth if params.form == "tree" else params.gamma


def _width(header: Header) -> int:
    params = params_of(header)
    return params.m if params.form == "tree" else 1


def _why_no_guess(run: RunState, step: Step) -> str:
    return SCREEN.why_no_guess(run, step)


_BOARD = products.ProductBoard(_depth, _width, _why_no_guess, agreement=on_stage.agreement_of)
SCREEN = Screen(
    sources={"eagle": "token {0} of the drafter", "branch": "guess {0} after the root, ranked {1} by the drafter"},
    origin=lambda run, step: products.origin(step, "by"),
    learned=products.learned,
    no_guess=lambda run, step: why_nothing(step),
    pool=_BOARD.picture(),
    stage=on_stage.STAGE,
    depth=_depth,
    weights=_BOARD.weights,
    depth_name="depth ",
)
