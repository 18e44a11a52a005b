"""Compares a record's header with the engine that checks it, and lists what of the header cannot be checked."""

from __future__ import annotations

from collections.abc import Iterator

from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.processor import processor_name
from decoding.request import largest_step
from decoding.run import slots
from decoding.types import Header, ModelCard

from .contradiction import Contradiction, differs

_MACHINE = "the machine that it names: its device, attention, processor, threads, caches, bandwidth, versions"
_FACTS = ("family", "parameters", "vocabulary", "context", "experts")  # of weights, on any machine
_BYTES = ("weight_bytes", "pass_bytes", "token_bytes")  # of the same dtype on the same machine


def untrue_header(engine: Engine, header: Header) -> Iterator[Contradiction]:
    """Compare what follows from the model, the drafter and the settings."""
    model, draft = engine.model, engine.draft
    if header.model.hash != model.card.hash:
        return  # another model, of which the header may be right
    yield from _card("model", header.model, model.card, alike=_alike(engine, header))
    if draft is not None and header.draft is not None and header.draft.hash == draft.card.hash:
        yield from _card("draft", header.draft, draft.card, alike=False)
    if header.window != model.rolling:
        yield differs(None, "window", header.window, "the model's layers", model.rolling)
    elif header.window is not None and (method := METHODS.get(header.method)) is not None:
        try:
            rows = largest_step(
                method.name, method.Params.parse(header.params), header.prefill_chunk, len(header.prompt)
            )
        except ParamError:
            return  # settings that no run can have, which other checks report
        needed = slots(model.rolling, rows, len(header.prompt) + header.max_new_tokens)
        if header.slots != needed:
            yield differs(None, "slots", header.slots, "the window and the settings", needed)


def _alike(engine: Engine, header: Header) -> bool:
    """Return True if weights take as many bytes here as they did in the run: processors pack them differently."""
    model = engine.model
    here = (model.precision, ",".join(map(str, model.devices)), processor_name())
    return (header.dtype, header.device, header.processor) == here


def _card(name: str, recorded: ModelCard, ours: ModelCard, *, alike: bool) -> Iterator[Contradiction]:
    for field in (*_FACTS, *(_BYTES if alike else ())):
        value, expected = getattr(recorded, field), getattr(ours, field)
        if value != expected and (value is not None or field in _FACTS[:4]):  # None: an older record
            yield differs(None, f"{name}.{field}", value, "the weights", expected)


def unchecked_header(engine: Engine, header: Header, *, again: bool) -> Iterator[str]:
    """Say what of a header cannot be checked; `again`: the run was repeated with its drafter and parts."""
    model, draft = engine.model, engine.draft
    yield _MACHINE
    yield "the size of the prompt's chunks (prefill_chunk)"
    yield "end tokens and stop strings that the text does not hold"
    if header.model.hash != model.card.hash:
        yield f"whether this is its model, which has the hash {header.model.hash[:12]!r}"
        yield "its window, its slots, and what it says of its model"
    elif not _alike(engine, header):
        yield "the bytes of its model's weights and of a token's keys and values, which are others here"
    if header.dtype != model.precision:
        yield f"its dtype, which is {header.dtype[:20]!r}: the model is {model.precision} here"
    if header.draft is not None and (draft is None or draft.card.hash != header.draft.hash):
        which = "is not here" if draft is None else "has another hash than the one here"
        yield f"its drafter {header.draft.name[:40]!r}, which {which}"
    if header.parts and not again:
        named = ", ".join(f"{part[:20]!r}" for part in sorted(header.parts)[:5])
        yield f"whether its parts ({named}) made these guesses"
    if header.branch is not None:
        yield "which run it branched from"
