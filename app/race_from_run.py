"""Fills in the form of a race from the run on the screen: a live run, a recording, or an uploaded trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from decoding.methods import METHODS

from .address import PageState
from .examples import EXAMPLES
from .lanes import name_of
from .presets import DEFAULTS
from .server.limits import LIMITS
from .settings_from_run import as_written, settings_from_run
from .state import AppState

_REPLACED = "The lanes that were here were replaced: a race has one prompt, one model and one sampling."


def race_from_run(
    app_state: AppState, query: Mapping[str, str], race: PageState | None = None
) -> tuple[PageState, list[str]]:
    """Return the state of a race for the run that an address names, and a remark on each setting that is missing.

    The run is a further lane of `race`, the form's, if both have the same prompt, model and sampling.
    """
    state, remarks = settings_from_run(app_state, query)
    if state.method is None:
        return state, remarks
    name = name_of(METHODS[state.method], state.params)
    if race is None or _task(race) != _task(state):
        state.lanes = {"autoregressive": (DEFAULTS,), state.method: (name,)}
        return state, remarks if race is None else [*remarks, _REPLACED]
    state.lanes, state.length = race.lanes, race.length
    held, label = tuple(race.lanes.get(state.method, ())), METHODS[state.method].label
    if name in held:
        remarks.append(f"{label} races with these settings already.")
    elif sum(map(len, race.lanes.values())) >= LIMITS.lanes:
        remarks.append(f"A race has at most {LIMITS.lanes} lanes: leave one out, and put {label} in again.")
    else:
        state.lanes = {**race.lanes, state.method: (*held, name)}
    return state, remarks


def _task(state: PageState) -> Sequence[object]:
    """Return what the lanes of a race have in common."""
    example = EXAMPLES.get(state.example or "")
    prompt = state.prompt or (example and (example.prompt or example.messages))
    return state.model, prompt and as_written(prompt), state.raw, state.sampling
