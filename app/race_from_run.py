"""What a race takes over from the run on the screen: a live one, a recording, or a trace that was dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from decoding.errors import SpecscopeError
from decoding.methods import METHODS
from decoding.request import find_sampling
from decoding.types import Header, Trace

from .address import State, parse
from .catalog import Entry
from .controls import check_prompt, named
from .examples import EXAMPLES
from .limits import LIMITS
from .state import House

if TYPE_CHECKING:
    from decoding.engine import Engine

_PATIENCE = 20.0  # seconds for the tokenizer, which comes with its model
_NO_MODEL = "This page does not have the run's model: the race is on another one."
_OTHER_TOKENS = "The prompt stands here as plain text: the model may read it as other tokens than the run did."
_OWN_SETTINGS = "A race knows presets only: the run's own settings of its method stay behind."


def take(house: House, query: Mapping[str, str]) -> tuple[State, list[str]]:
    """The race of the run that an address names, and sentences about what could not be taken over."""
    state, remarks = parse(query, house.catalog), list[str]()
    try:
        kept = house.store.get(state.run)
        if kept is not None:
            _from_trace(house, kept.trace, state, remarks)
    except SpecscopeError as error:
        remarks.append(f"{str(error)[:1].upper()}{str(error)[1:].rstrip('.')}.")
    if state.method is not None:
        _set_method(state, remarks)
    return state, remarks


def _from_trace(house: House, trace: Trace, state: State, remarks: list[str]) -> None:
    """What the address of the run does not tell already."""
    header = trace.header
    entry = house.catalog.get(state.model or "") or _entry(house, header)
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
        text, same = _text(house, entry, trace)
        state.prompt = check_prompt(text)
        state.example = next((known.id for known in EXAMPLES.values() if known.prompt == text), None)
        if not same:
            remarks.append(_OTHER_TOKENS)


def _entry(house: House, header: Header) -> Entry | None:
    """The model of the catalog that a record names."""
    name = header.model.name
    return next((entry for entry in house.catalog.values() if name in (entry.name, entry.model)), None)


def _text(house: House, entry: Entry | None, trace: Trace) -> tuple[str, bool]:
    """The prompt as a text, and whether the model is known to read it as the very tokens of the record."""
    prompt = trace.header.prompt
    pieces = [trace.texts.get(token, "") for token in prompt]
    spelled = "".join(pieces)
    engine = None if entry is None else house.runs.engines.ask(entry).wait(_PATIENCE)
    if engine is None:
        return spelled, False
    plain = engine.codec.decode(prompt)  # the model puts its special tokens around a text by itself
    for text in (plain, spelled, "".join(pieces[1:])):
        if text.strip() and _reads(engine, text) == list(prompt):
            return text, True
    return plain, False


def _reads(engine: Engine, text: str) -> list[int]:
    try:
        return engine.encode(text)
    except SpecscopeError:
        return []


def _set_method(state: State, remarks: list[str]) -> None:
    """The run's method beside autoregressive decoding, with its preset."""
    assert state.method is not None
    state.methods = tuple(dict.fromkeys(("autoregressive", state.method)))
    chosen = named(METHODS[state.method], state.params)
    if not chosen:
        remarks.append(_OWN_SETTINGS)
    elif METHODS[state.method].Params.presets:
        state.presets[state.method] = chosen
