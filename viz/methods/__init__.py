"""The screens of the methods, in the order of the page. All that only one method shows is in its file."""

from __future__ import annotations

from collections.abc import Set

from decoding.methods import METHODS
from decoding.types import Header

from ..params import setting_label
from ..run_state import RunState
from ..view import Picture
from . import (
    autoregressive,
    dflash,
    draft_model,
    eagle3,
    jacobi,
    kangaroo,
    lookahead,
    medusa,
    ngrammys,
    ouroboros,
    prompt_lookup,
    rest,
    suffix,
    token_recycling,
)
from .base import Screen

SCREENS: dict[str, Screen] = {
    "autoregressive": autoregressive.SCREEN,
    "jacobi": jacobi.SCREEN,
    "lookahead": lookahead.SCREEN,
    "draft_model": draft_model.SCREEN,
    "prompt_lookup": prompt_lookup.SCREEN,
    "suffix": suffix.SCREEN,
    "ngrammys": ngrammys.SCREEN,
    "token_recycling": token_recycling.SCREEN,
    "medusa": medusa.SCREEN,
    "kangaroo": kangaroo.SCREEN,
    "eagle3": eagle3.SCREEN,
    "dflash": dflash.SCREEN,
    "ouroboros": ouroboros.SCREEN,
    "rest": rest.SCREEN,
}
_PLAIN = Screen()
# The settings of sampling, called as their class describes them, which a replay does not import: it brings torch.
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")

__all__ = ["SCREENS", "Picture", "Screen", "inspired_nodes", "label_of", "screen_of", "setting_labels"]


def screen_of(header: Header) -> Screen:
    """Return the screen of a run's method, or a plain one."""
    return SCREENS.get(header.method, _PLAIN)


def label_of(header: Header) -> str:
    """Return the label of a run's method, or its name if it is unknown."""
    return METHODS[header.method].label if header.method in METHODS else header.method


def setting_labels(header: Header) -> dict[str, str]:
    """Return the labels of a run's settings by their names, as the page's form shows them."""
    method = METHODS.get(header.method)
    labels = {row["name"]: setting_label(row) for row in method.Params.describe()} if method else {}
    return labels | {name: name.capitalize().replace("_", " ") for name in _SAMPLING}


def inspired_nodes(run: RunState, k: int) -> Set[int]:
    """Return the nodes of step k that an earlier answer of the target helped to make."""
    inspired = screen_of(run.header).inspired
    return inspired(run, k) if inspired else frozenset()
