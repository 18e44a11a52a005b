"""Fills in the form of a race from the run on the screen: a live run, a recording, or an uploaded trace."""

from __future__ import annotations

from collections.abc import Mapping

from decoding.methods import METHODS

from .address import PageState
from .lanes import name_of
from .presets import DEFAULTS
from .settings_from_run import settings_from_run
from .state import AppState


def race_from_run(app_state: AppState, query: Mapping[str, str]) -> tuple[PageState, list[str]]:
    """Return the state of a race for the run that an address names, and a remark on each setting that is missing."""
    state, remarks = settings_from_run(app_state, query)
    if state.method is not None:
        state.lanes = {"autoregressive": (DEFAULTS,), state.method: (name_of(METHODS[state.method], state.params),)}
    return state, remarks
