"""Reads the settings that made a run: a live run, a recording, or an uploaded trace.

The address takes precedence, and what it lacks is read from the run. Both are untrusted until they are parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from decoding.errors import ParamError, SpecscopeError
from decoding.methods import METHODS
from decoding.request import find_sampling
from decoding.types import Header, Trace
from viz import token_text

from .address import PageState, parse
from .controls import CheckedPrompt, Order, check_prompt, check_reference, order, runnable
from .conversation import conversation_of
from .examples import EXAMPLES
from .jobs.streaming import as_sentence
from .models.catalog import entry_of
from .models.entry import CatalogEntry
from .server.limits import LIMITS
from .state import AppState

if TYPE_CHECKING:
    from decoding.codec import Codec

_NO_MODEL = "This page does not have the run's model: another one is selected."
_NO_METHOD = "The selected model lacks the parts that the run's method needs: another method is selected."
_LEFT = "The prompt field was left as it was: "
_NO_TOKENIZER = _LEFT + "the tokenizer of the run's model is not on this server."
_NO_TEXT = _LEFT + "no text becomes exactly the tokens of the run's prompt."
_NO_REFERENCE = "The run's reference document was not copied."


def settings_from_run(app_state: AppState, query: Mapping[str, str]) -> tuple[PageState, list[str]]:
    """Return the state that fills a form with a run's settings, and a sentence on each that could not be copied.

    A prompt is copied only if the tokenizer of the run's model turns it into exactly the run's tokens.
    """
    state, remarks = parse(query, app_state.catalog), list[str]()
    try:
        _copy_settings(app_state, state, remarks)
    except SpecscopeError as error:
        remarks.append(as_sentence(error))
    return state, remarks


def order_of(app_state: AppState, state: PageState) -> Order:
    """Return the order of a run with these settings. Raises ParamError if the page cannot run it."""
    if state.model is None:
        raise ParamError("this page does not have the run's model: choose another one in the form, and press Run")
    if state.prompt is None:
        raise ParamError("the run's prompt could not be copied: write one in the form, and press Run")
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


def _copy_settings(app_state: AppState, state: PageState, remarks: list[str]) -> None:
    header = _header(app_state, state.run)
    if header is None:
        return
    entry = app_state.catalog.get(state.model or "") or entry_of(app_state.catalog, header)
    if entry is None or not (entry.at_hand or state.model):
        remarks.append(_NO_MODEL)
    else:
        state.model = entry.name
    if state.method is None and header.method in METHODS:
        _copy_method(header, state, entry, remarks)
    state.sampling = find_sampling(header.sampling).to_json()
    most = LIMITS.new_tokens if entry is None else entry.max_new_tokens
    if state.length is None and header.max_new_tokens > most:
        remarks.append(f"The run was longer than this page allows: the length is set to {most} new tokens.")
    state.length = state.length or min(header.max_new_tokens, most)
    if state.prompt is None and state.example is None:
        _copy_prompt(app_state, state, remarks)


def _copy_method(header: Header, state: PageState, entry: CatalogEntry | None, remarks: list[str]) -> None:
    setting = METHODS[header.method].Params.parse(dict(header.params))
    state.method = header.method
    if setting.nodes > LIMITS.nodes:
        remarks.append(
            f"A step of the run had {setting.nodes} tokens, above {LIMITS.nodes}: lower the settings to run it."
        )
    state.params = setting.to_json()
    if entry is not None and header.method not in runnable(entry):
        remarks.append(_NO_METHOD)


def _copy_prompt(app_state: AppState, state: PageState, remarks: list[str]) -> None:
    """Copy the prompt: from the recipe of a recording, or reconstructed from its tokens."""
    recording = app_state.recordings.get(state.run)
    if recording is not None and recording.prompt is not None:
        state.prompt = check_prompt(recording.prompt)
    else:
        trace = _trace(app_state, state.run)
        if trace is None:
            return
        codec = app_state.codec_of(trace.header)
        if trace.header.reference:
            state.reference = check_reference(codec.decode(trace.header.reference)) if codec else ""
            remarks += [] if state.reference else [_NO_REFERENCE]
        faithful = _prompt_of(codec, trace.header.prompt) if codec else None
        if faithful is None:
            remarks.append(_NO_TEXT if codec else _NO_TOKENIZER)
            return
        state.prompt, state.raw = check_prompt(faithful[0]), faithful[1]
    if not state.raw:
        state.example = _example(state.prompt)


def _header(app_state: AppState, run: str | None) -> Header | None:
    """Return a run's header; that of a recording is in memory already."""
    if run is not None and app_state.recordings.get(run) is not None:
        return app_state.recordings.header(run)
    trace = _trace(app_state, run)
    return None if trace is None else trace.header


def _trace(app_state: AppState, run: str | None) -> Trace | None:
    stored = app_state.store.get(run)
    return None if stored is None else stored.trace


def as_written(prompt: str | Sequence[Mapping[str, str]]) -> CheckedPrompt:
    """Return a prompt as a visitor writes it: a chat of one turn is a message."""
    if isinstance(prompt, str):
        return prompt
    return prompt[0]["content"] if len(prompt) == 1 else tuple(dict(message) for message in prompt)


def _example(prompt: CheckedPrompt) -> str | None:
    """Return the id of the example that has this prompt."""
    return next((each.id for each in EXAMPLES.values() if as_written(each.prompt or each.messages) == prompt), None)


def _prompt_of(codec: Codec, ids: Sequence[int]) -> tuple[CheckedPrompt, bool] | None:
    """Return the prompt that encodes to exactly these tokens, and whether it is raw; None if there is none."""
    if messages := conversation_of(codec, ids):
        return as_written(messages), False
    pieces = [codec.piece(token) for token in ids]
    plain = codec.decode(ids)  # without the special tokens, which the tokenizer adds to a text
    for text in (plain, "".join(token_text.whole(pieces)), "".join(token_text.whole(pieces[1:]))):
        if text.strip() and _encode(codec, text) == list(ids):
            return text, True
    return None


def _encode(codec: Codec, text: str) -> list[int]:
    try:
        return codec.encode(text)
    except SpecscopeError:
        return []
