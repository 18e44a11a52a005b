"""Fills in the form of a race from the run on the screen: a live run, a recording, or an uploaded trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from decoding.errors import SpecscopeError
from decoding.methods import METHODS
from decoding.request import find_sampling
from decoding.types import Header, Trace

from .address import PageState, parse
from .catalog import Entry
from .controls import check_prompt, preset_name
from .examples import EXAMPLES
from .limits import LIMITS
from .state import AppState
from .streaming import as_sentence

if TYPE_CHECKING:
    from decoding.engine import Engine

_LOAD_TIMEOUT = 20.0  # seconds for the model, whose tokenizer is needed
_NO_MODEL = "This page does not have the run's model: another one is selected."
_OTHER_TOKENS = "The prompt was converted to plain text: its tokens may differ from those of the run."
_OWN_SETTINGS = "A race uses presets only: the method's own settings in the run were not copied."


def race_from_run(app_state: AppState, query: Mapping[str, str]) -> tuple[PageState, list[str]]:
    """The race form for the run that an address names, and a remark on each setting that could not be copied."""
    state, remarks = parse(query, app_state.catalog), list[str]()
    try:
        stored = app_state.store.get(state.run)
        if stored is not None:
            _copy_settings(app_state, stored.trace, state, remarks)
    except SpecscopeError as error:
        remarks.append(as_sentence(error))
    if state.method is not None:
        _set_method(state, remarks)
    return state, remarks


def _copy_settings(app_state: AppState, trace: Trace, state: PageState, remarks: list[str]) -> None:
    """Copy from the trace what the address does not contain."""
    header = trace.header
    entry = app_state.catalog.get(state.model or "") or _entry(app_state, header)
    if entry is None:
        remarks.append(_NO_MODEL)
    else:
        state.model = entry.name
    if state.method is None and header.method in METHODS:
        state.method = header.method
        state.params = METHODS[header.method].Params.parse(dict(header.params)).to_json()
    state.sampling = find_sampling(header.sampling).to_json()
    state.length = state.length or min(header.max_new_tokens, LIMITS.new_tokens)
    if state.prompt is None and state.example is None:
        text, state.raw, same_tokens = _prompt_text(app_state, entry, trace)
        state.prompt = check_prompt(text)
        state.example = next((known.id for known in EXAMPLES.values() if known.prompt == text), None)
        if not same_tokens:
            remarks.append(_OTHER_TOKENS)


def _entry(app_state: AppState, header: Header) -> Entry | None:
    """The catalog's entry for the model that a trace names."""
    name = header.model.name
    return next((entry for entry in app_state.catalog.values() if name in (entry.name, entry.model)), None)


def _prompt_text(app_state: AppState, entry: Entry | None, trace: Trace) -> tuple[str, bool, bool]:
    """The prompt as text, whether it is fed as it is, and whether exactly the tokens of the trace come of that."""
    prompt = trace.header.prompt
    pieces = [trace.texts.get(token, "") for token in prompt]
    spelled = "".join(pieces)
    engine = None if entry is None else app_state.runs.models.request(entry).wait(_LOAD_TIMEOUT)
    if engine is None:
        return spelled, False, False
    if message := engine.codec.message_of(prompt):
        return message, False, True
    plain = engine.codec.decode(prompt)  # without the special tokens, which the tokenizer adds to a text
    for text in (plain, spelled, "".join(pieces[1:])):
        if text.strip() and _encode(engine, text) == list(prompt):
            return text, True, True
    return plain, True, False


def _encode(engine: Engine, text: str) -> list[int]:
    try:
        return engine.encode(text)
    except SpecscopeError:
        return []


def _set_method(state: PageState, remarks: list[str]) -> None:
    """Select the run's method with its preset, and autoregressive decoding."""
    assert state.method is not None
    state.methods = tuple(dict.fromkeys(("autoregressive", state.method)))
    chosen = preset_name(METHODS[state.method], state.params)
    if not chosen:
        remarks.append(_OWN_SETTINGS)
    elif METHODS[state.method].Params.presets:
        state.presets[state.method] = chosen
