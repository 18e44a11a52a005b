"""DFlash on the screen: the drafter's guesses by position in the block and by the product of their probabilities."""

from __future__ import annotations

from decoding.methods.dflash import DFlashParams
from decoding.types import Header, Step

from ..params import params_reader
from ..run_state import RunState
from . import products
from .base import Screen
from .stages import dflash as on_stage
from .stages.features import why_nothing

params_of = params_reader(DFlashParams)


def _depth(header: Header) -> int:
    return params_of(header).gamma


def _width(header: Header) -> int:
    params = params_of(header)
    return params.m if params.form == "tree" else 1


def _why_no_guess(run: RunState, step: Step) -> str:
    return SCREEN.why_no_guess(run, step)


_BOARD = products.ProductBoard(_depth, _width, _why_no_guess)
SCREEN = Screen(
    sources={
        "block": "drawn at position {0} of the drafter's block",
        "place": "position {0} of the drafter's block, rank {1} there",
    },
    origin=lambda run, step: products.origin(step, "from one block of"),
    learned=products.learned,
    no_guess=lambda run, step: why_nothing(step),
    pool=_BOARD.picture(),
    stage=on_stage.STAGE,
    depth=_depth,
    weights=_BOARD.weights,
    depth_name="depth ",
)
