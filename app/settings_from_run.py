"""Reads the settings that made a run: a live run, a recording, or an uploaded trace.

What an address contains counts; what it lacks is read from the run. All of it is untrusted until it has been parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from decoding.errors import ParamError, SpecscopeError
from decoding.methods import METHODS
from decoding.request import find_sampling
from decoding.types import Header, Trace
from viz import token_text

from .address import PageState, parse
from .catalog import Entry
from .controls import Order, Prompt, check_prompt, check_reference, order, runnable
from .examples import EXAMPLES
from .limits import LIMITS
from .state import AppState
from .streaming import as_sentence

if TYPE_CHECKING:
    from decoding.engine import Engine

_LOAD_TIMEOUT = 20.0  # seconds for the model, whose tokenizer is needed
_NO_MODEL = "This page does not have the run's model: another one is selected."
_NO_METHOD = "The selected model lacks the parts that the run's method needs: another method is selected."
_OTHER_TOKENS = "The prompt was converted to plain text: its tokens may differ from those of the run."
_NO_REFERENCE = "The run's reference document was not copied."
_SHORTER = f"The run was longer than this page allows: the length is set to {LIMITS.new_tokens} new tokens."


def settings_from_run(
    app_state: AppState, query: Mapping[str, str], *, load: bool = False
) -> tuple[PageState, list[str]]:
    """The state that filling in a form with a run's settings needs, and a sentence on each that could not be copied.

    The prompt of an unknown run is spelled by the tokenizer of its model. With `load` the model is loaded for that;
    without, the run's own texts stand in where it is not loaded.
    """
    state, remarks = parse(query, app_state.catalog), list[str]()
    try:
        _copy_settings(app_state, state, remarks, load)
    except SpecscopeError as error:
        remarks.append(as_sentence(error))
    return state, remarks


def order_of(app_state: AppState, state: PageState) -> Order:
    """The order of a run with these settings. Raises ParamError if the page cannot run it."""
    if state.model is None:
        raise ParamError("this page does not have the run's model: choose another one in the form, and press Run")
    return order(
        app_state.catalog,
        model=state.model,
        method=state.method,
        params=state.params,
        sampling=state.sampling,
        prompt=state.prompt,
        max_new_tokens=state.length,
        reference=state.reference,
        raw=state.raw,
    )


def _copy_settings(app_state: AppState, state: PageState, remarks: list[str], load: bool) -> None:
    header = _header(app_state, state.run)
    if header is None:
        return
    entry = app_state.catalog.get(state.model or "") or entry_of(app_state, header)
    if entry is None or not (entry.at_hand or state.model):
        remarks.append(_NO_MODEL)
    else:
        state.model = entry.name
    if state.method is None and header.method in METHODS:
        _copy_method(header, state, entry, remarks)
    state.sampling = find_sampling(header.sampling).to_json()
    if state.length is None and header.max_new_tokens > LIMITS.new_tokens:
        remarks.append(_SHORTER)
    state.length = state.length or min(header.max_new_tokens, LIMITS.new_tokens)
    if state.prompt is None and state.example is None:
        _copy_prompt(app_state, state, entry, remarks, load)


def _copy_method(header: Header, state: PageState, entry: Entry | None, remarks: list[str]) -> None:
    setting = METHODS[header.method].Params.parse(dict(header.params))
    state.method = header.method
    if setting.nodes > LIMITS.nodes:
        remarks.append(
            f"A step of the run had {setting.nodes} tokens, above {LIMITS.nodes}: lower the settings to run it."
        )
    state.params = setting.to_json()
    if entry is not None and header.method not in runnable(entry):
        remarks.append(_NO_METHOD)


def _copy_prompt(app_state: AppState, state: PageState, entry: Entry | None, remarks: list[str], load: bool) -> None:
    """Copy the prompt: from the recipe of a recording, or in the words that its tokens stand for."""
    known = _recorded_prompts().get(state.run or "") if app_state.recordings.get(state.run) else None
    if known is not None:
        state.prompt = check_prompt(known)
    else:
        trace = _trace(app_state, state.run)
        if trace is None:
            return
        engine = _engine(app_state, entry, load)
        text, state.raw, same_tokens = _prompt_text(engine, trace)
        state.prompt = check_prompt(text)
        if not same_tokens:
            remarks.append(_OTHER_TOKENS)
        if trace.header.reference:
            state.reference = check_reference(engine.codec.decode(trace.header.reference)) if engine else ""
            remarks += [] if state.reference else [_NO_REFERENCE]
    if not state.raw:
        state.example = _example(state.prompt)


def _header(app_state: AppState, run: str | None) -> Header | None:
    """A run's header; that of a recording is in memory already."""
    if run is not None and app_state.recordings.get(run) is not None:
        return app_state.recordings.header(run)
    trace = _trace(app_state, run)
    return None if trace is None else trace.header


def _trace(app_state: AppState, run: str | None) -> Trace | None:
    stored = app_state.store.get(run)
    return None if stored is None else stored.trace


def entry_of(app_state: AppState, header: Header) -> Entry | None:
    """The catalog's entry for the model that a trace names."""
    name = header.model.name
    return next((entry for entry in app_state.catalog.values() if name in (entry.name, entry.model)), None)


def _engine(app_state: AppState, entry: Entry | None, load: bool) -> Engine | None:
    """The engine of a run's model, if it is loaded, or may be loaded now."""
    models = app_state.runs.models
    if entry is None or not (load or entry.name in models):
        return None
    return models.request(entry).wait(_LOAD_TIMEOUT if load else 0.0)


@cache
def _recorded_prompts() -> dict[str, Prompt]:
    """What the gallery's recordings were made from, as a visitor would write it: no model is needed to spell it."""
    from .gallery_recipes import recipes

    return {recipe.id: _as_written(recipe.prompt) for recipe in recipes()}


def _as_written(prompt: str | Sequence[Mapping[str, str]]) -> Prompt:
    """A prompt as a visitor writes it: a chat of one turn is a message."""
    if isinstance(prompt, str):
        return prompt
    return prompt[0]["content"] if len(prompt) == 1 else tuple(dict(message) for message in prompt)


def _example(prompt: Prompt) -> str | None:
    """The id of the example that has this prompt."""
    return next((each.id for each in EXAMPLES.values() if _as_written(each.prompt or each.messages) == prompt), None)


def _prompt_text(engine: Engine | None, trace: Trace) -> tuple[str, bool, bool]:
    """The prompt as text, whether it is fed as it is, and whether exactly the tokens of the trace come of that."""
    prompt = trace.header.prompt
    pieces = [trace.texts.get(token, "") for token in prompt]
    spelled = "".join(token_text.whole(pieces))
    if engine is None:
        return spelled, True, False
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
