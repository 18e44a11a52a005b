"""What the record tells of the cache, against a cache that is watched while it runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.model.decoder_session import DecoderSession
from decoding.model.loading import decoder_of
from decoding.types import Header, Step, Timing
from tests.families import tiny
from viz.cache_slots import Use, cache_state, chunks

PROMPT = (3, 1, 4, 1, 5, 9, 2, 6) * 6
TRACE = Engine(decoder_of(tiny("mistral")), Codec()).generate(PROMPT, max_new_tokens=2).trace


def run(method: str, params: dict[str, int], monkeypatch: pytest.MonkeyPatch, new: int = 150) -> tuple[Engine, object]:
    monkeypatch.setattr("decoding.request._NODES", 24)
    engine = Engine(decoder_of(tiny("mistral"), torch.float64), Codec())
    engine.draft = decoder_of(tiny("mistral"), torch.float64)
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
    got = cache_state(trace.header, trace.steps, len(trace.steps) - 1)
    session = engine.session_pool.acquire(engine.model, 1, 1)
    stored = sum(len(step.emitted) for step in trace.steps) + len(PROMPT) - 1
    assert sorted(place for place in got.holds if place >= 0)[-16:] == list(range(stored - 16, stored))
    assert isinstance(session, DecoderSession) and session.cache.slots == trace.header.slots
    assert session.length == stored
    text = (*PROMPT, *trace.ids)
    fresh = engine.model.open(512, 24)
    for place in range(stored):
        fresh.read([text[place]], (-1,))
        fresh.commit([0])
    assert isinstance(fresh, DecoderSession)
    for slot, place in enumerate(got.holds):
        if place >= stored - 16:
            assert torch.allclose(session.cache.data[:, :, slot], fresh.cache.data[:, :, place % fresh.cache.slots])


def test_every_slot_is_in_one_state_and_nothing_visible_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ring's very purpose: a rejected guess never destroys a key that is still seen."""
    _, result = run("lookahead", {"W": 4, "N": 3, "G": 4}, monkeypatch)
    trace = result.trace  # type: ignore[attr-defined]
    rejected = 0
    for index, step in enumerate(trace.steps):
        got = cache_state(trace.header, trace.steps, index)
        assert len(got.uses) == len(got.holds) == trace.header.slots
        written = [use for use in got.uses if use in (Use.STORED, Use.REJECTED)]
        if index:
            assert len(written) == step.fed
            assert got.uses.count(Use.STORED) == min(step.accepted + 1, len(step.emitted))
        assert all(place < step.start - 16 for place in got.lost)
        rejected += got.uses.count(Use.REJECTED)
        seen = {place for place, use in zip(got.holds, got.uses, strict=True) if use in (Use.READ, Use.STORED)}
        assert seen >= set(range(max(0, step.start - 16), step.start)), "a visible position is in no slot"
    assert rejected > 100


def test_a_cache_that_never_comes_round_shows_what_is_used() -> None:
    engine = Engine(decoder_of(tiny("llama"), torch.float64), Codec())
    trace = engine.generate((1, 2, 3), max_new_tokens=4).trace
    assert trace.header.slots == 0 and trace.header.window is None
    got = cache_state(trace.header, trace.steps, 1)
    assert got.holds == (0, 1, 2, 3) and not got.lost
    assert got.uses == (Use.READ,) * 3 + (Use.STORED,)


def slot_by_slot(header: Header, steps: list[Step]) -> tuple[list[Use], dict[int, int], list[int]]:
    """Return the cache after the last step, by writing every row of every step into its slot."""
    highest, held, uses, lost = 0, dict[int, int](), dict[int, Use](), list[int]()
    for step in steps:
        stored, root = step.start - 1 - step.pending, step.start - 1
        end, kept = stored + step.fed, root + min(step.accepted + 1, len(step.emitted))
        seen = 0 if header.window is None else max(0, stored - header.window + 1)
        uses = {slot: Use.READ if place >= seen else Use.UNTOUCHED for slot, place in held.items()}
        lost = []
        for place in range(stored, end):
            slot = place % header.slots
            if held.get(slot, place) != place:
                lost.append(held.pop(slot))
            uses[slot] = Use.STORED if place < kept else Use.REJECTED
            held.pop(slot, None)
            if place < kept:
                held[slot] = place
        highest = max(highest, end)
    free = [Use.UNTOUCHED if slot < highest else Use.EMPTY for slot in range(header.slots)]
    return [uses.get(slot, free[slot]) for slot in range(header.slots)], held, lost


@given(
    st.integers(1, 12),
    st.integers(2, 12),
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=40),
)
def test_a_few_boundaries_tell_what_every_slot_holds(
    window: int, largest: int, prompt: int, turns: list[tuple[int, int]]
) -> None:
    """For runs of any shape the closed form says what writing row by row says."""
    steps, start = list[Step](), prompt
    for index, (drafted, accepted) in enumerate(turns):
        drafted, pending = min(drafted, largest - 1), start - 1 if not index else 0
        accepted = min(accepted, drafted)
        fed, emitted = pending + 1 + drafted, (1,) * (accepted + 1)
        steps.append(Step(index, start, pending, emitted, accepted, drafted, fed, Timing()))
        start += len(emitted)
    header = replace(TRACE.header, window=window, slots=window + 2 * largest)
    got, (uses, held, lost) = cache_state(header, steps, len(steps) - 1), slot_by_slot(header, steps)
    assert (list(got.uses), list(got.lost)) == (uses, lost)
    assert got.holds == tuple(held.get(slot, -1) for slot in range(header.slots))


def test_a_long_run_is_told_without_looking_at_its_slots() -> None:
    """A file from elsewhere may name any number of slots and rows: neither is walked through."""
    header = replace(TRACE.header, slots=10**15)
    got = cache_state(header, [replace(TRACE.steps[0], fed=10**12)], 0)
    assert got.slots == 10**15 and got.highest <= len(PROMPT) + 4096
    assert [use for _, use in got.parts] == [Use.STORED, Use.REJECTED]


def test_chunks_are_what_the_model_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunk by chunk the pending tokens, the last of them perhaps together with the step's tree."""
    monkeypatch.setattr("decoding.request._NODES", 24)
    engine, read = Engine(decoder_of(tiny("mistral"), torch.float64), Codec()), list[int]()
    whole = DecoderSession.read

    def watched(session: DecoderSession, tokens: list[int], *rest: object, **more: object) -> object:
        read.append(len(tokens))
        return whole(session, tokens, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(DecoderSession, "read", watched)
    trace = engine.generate(PROMPT, "jacobi", params={"n": 4}, max_new_tokens=2, prefill_chunk=20).trace
    step = trace.steps[0]
    sizes = [len(part) for part in chunks(trace.header, step)]
    assert sizes == [20, 20, 7] and sum(sizes) == step.pending
    assert read[: len(sizes)] == [20, 20, 7 + len(step.tokens)]
