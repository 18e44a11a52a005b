"""Fills in the form of a race from the run on the screen: a live run, a recording, or an uploaded trace."""

from __future__ import annotations

from collections.abc import Mapping

from decoding.methods import METHODS

from .address import PageState
from .presets import preset_name
from .settings_from_run import settings_from_run
from .state import AppState

_OWN_SETTINGS = "A race uses presets only: the method's own settings in the run were not copied."


def race_from_run(app_state: AppState, query: Mapping[str, str]) -> tuple[PageState, list[str]]:
    """Return the state of a race for the run that an address names, and a remark on each setting that was left."""
    state, remarks = settings_from_run(app_state, query)
    if state.method is not None:
        _set_method(state, remarks)
    return state, remarks


def _set_method(state: PageState, remarks: list[str]) -> None:
    """Select the run's method with its preset, and autoregressive decoding."""
    assert state.method is not None
    state.methods = tuple(dict.fromkeys(("autoregressive", state.method)))
    chosen = preset_name(METHODS[state.method], state.params)
    if not chosen:
        remarks.append(_OWN_SETTINGS)
    elif METHODS[state.method].Params.presets:
        state.presets[state.method] = chosen
