"""What the record tells of the cache, against a cache that is watched while it runs."""

from __future__ import annotations

import pytest
import torch

from decoding.engine import Engine
from decoding.memory import Use, memory
from decoding.model.decoder import Decoder, DecoderSession
from decoding.text import Codec
from tests.families import tiny

PROMPT = (3, 1, 4, 1, 5, 9, 2, 6) * 6


def run(method: str, params: dict[str, int], monkeypatch: pytest.MonkeyPatch, new: int = 150) -> tuple[Engine, object]:
    monkeypatch.setattr("decoding.request._NODES", 24)
    engine = Engine(Decoder.from_transformers(tiny("mistral"), torch.float64), Codec())
    engine.draft = engine.model
    return engine, engine.generate(PROMPT, method, params=params, max_new_tokens=new, prefill_chunk=8)


@pytest.mark.parametrize(
    ("method", "params"),
    [("autoregressive", {}), ("draft_model", {"gamma": 4}), ("lookahead", {"W": 4, "N": 3, "G": 4}), ("jacobi", {})],
)
def test_it_tells_what_a_fresh_reading_of_the_text_puts_there(
    method: str, params: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it says that a slot holds a place, the real cache holds that place's own keys and values."""
    engine, result = run(method, params, monkeypatch)
    trace = result.trace  # type: ignore[attr-defined]
    assert trace.header.window == 16 and trace.header.slots == 16 + 2 * 24
    told = memory(trace.header, trace.steps, len(trace.steps) - 1)
    session = engine._lender.borrow(engine.model, 1, 1) if method != "draft_model" else None
    stored = sum(len(step.emitted) for step in trace.steps) + len(PROMPT) - 1
    assert sorted(place for place in told.holds if place >= 0)[-16:] == list(range(stored - 16, stored))
    if session is None:
        return
    assert isinstance(session, DecoderSession) and session.cache.slots == trace.header.slots
    assert session.length == stored
    text = (*PROMPT, *trace.ids)
    fresh = engine.model.open(512, 24)
    for place in range(stored):
        fresh.read([text[place]], (-1,))
        fresh.commit([0])
    assert isinstance(fresh, DecoderSession)
    for slot, place in enumerate(told.holds):
        if place >= stored - 16:
            assert torch.allclose(session.cache.data[:, :, slot], fresh.cache.data[:, :, place % fresh.cache.slots])


def test_every_slot_is_in_one_state_and_nothing_visible_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ring's very purpose: a rejected guess never destroys a key that is still seen."""
    _, result = run("lookahead", {"W": 4, "N": 3, "G": 4}, monkeypatch)
    trace = result.trace  # type: ignore[attr-defined]
    rejected = 0
    for index, step in enumerate(trace.steps):
        told = memory(trace.header, trace.steps, index)
        assert len(told.uses) == len(told.holds) == trace.header.slots
        written = [use for use in told.uses if use in (Use.STORED, Use.REJECTED)]
        if index:
            assert len(written) == step.fed
            assert told.uses.count(Use.STORED) == min(step.accepted + 1, len(step.emitted))
        assert all(place < step.start - 16 for place in told.lost)
        rejected += told.uses.count(Use.REJECTED)
        seen = {place for place, use in zip(told.holds, told.uses, strict=True) if use in (Use.READ, Use.STORED)}
        assert seen >= set(range(max(0, step.start - 16), step.start)), "a visible place stands in no slot"
    assert rejected > 100


def test_a_cache_that_never_comes_round_shows_what_is_used() -> None:
    engine = Engine(Decoder.from_transformers(tiny("llama"), torch.float64), Codec())
    trace = engine.generate((1, 2, 3), max_new_tokens=4).trace
    assert trace.header.slots == 0 and trace.header.window is None
    told = memory(trace.header, trace.steps, 1)
    assert told.holds == (0, 1, 2, 3) and told.lost == ()
    assert told.uses == (Use.READ,) * 3 + (Use.STORED,)
