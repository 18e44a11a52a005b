"""A session through many steps: what is stored is what a fresh pass would store, and nothing else is ever looked at."""

from __future__ import annotations

import random

import pytest
import torch

from decoding.errors import ModelError
from decoding.model.decoder import Decoder
from decoding.model.decoder_session import DecoderSession
from decoding.model.loading import decoder_of
from tests.families import tiny
from tests.model.texts import chain, feed, random_path, random_tree, text

WINDOW = 16
NAMES = ["llama", "qwen2-mixed", "mistral", "phi3"]  # the last two roll where capacity allows it


def needed(session: DecoderSession, layer: int) -> torch.Tensor:
    """Return the slots that the next step may look at."""
    window = session._model.shape.windows[layer]
    start = 0 if window is None else max(0, session.length - window + 1)
    return torch.arange(start, session.length) % session.cache.slots


def assert_stored(session: DecoderSession, tokens: list[int], decoder: Decoder) -> None:
    """Assert that the visible part of the cache equals that of a fresh pass over the text."""
    fresh = decoder.open(len(tokens), len(tokens))
    fresh.read(tokens, chain(len(tokens)))
    fresh.commit(range(len(tokens)))
    assert session.length == len(tokens)
    for layer in range(len(session._model.shape.windows)):
        slots = needed(session, layer)
        places = torch.arange(len(tokens) - len(slots), len(tokens))
        torch.testing.assert_close(
            session.cache.data[layer, :, slots], fresh.cache.data[layer, :, places], rtol=0.0, atol=1e-5
        )


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_after_every_step_the_cache_is_that_of_a_fresh_pass(name: str, seed: int) -> None:
    """An accepted row moved wrongly, or a rejected one left behind, poisons every later token."""
    decoder, source = decoder_of(tiny(name)), random.Random(seed)
    session, tokens, longest = decoder.open(150, 12), text(30, seed), 30
    feed(session, tokens, 12)
    rolls = name in ("mistral", "phi3")
    assert session.cache.slots == (WINDOW + 24 if rolls else 162)
    while len(tokens) < 120:
        parents = random_tree(source.randint(1, 12), source.random())
        proposed, path = text(len(parents), source.random()), random_path(parents, source.random())
        session.read(proposed, parents)
        session.commit(path)
        tokens += [proposed[row] for row in path]
        longest = max(longest, len(tokens))
        assert_stored(session, tokens, decoder)
        if source.random() < 0.3:
            tokens = tokens[: source.randint(max(longest - 12, len(tokens) - 6), len(tokens))]
            session.rewind(len(tokens))
            assert_stored(session, tokens, decoder)


@pytest.mark.parametrize("name", NAMES)
def test_no_slot_but_those_needed_is_looked_at(name: str) -> None:
    """Masking is not enough: 0 * NaN is NaN, so a stale or unwritten slot must not even be read."""
    decoder, source = decoder_of(tiny(name)), random.Random(7)
    clean, dirty = decoder.open(200, 12), decoder.open(200, 12)
    for turn in range(40):
        for layer in range(len(decoder.shape.windows)):
            kept = dirty.cache.data[layer, :, needed(dirty, layer)]
            with torch.inference_mode():
                dirty.cache.data[layer] = torch.nan
                dirty.cache.data[layer, :, needed(dirty, layer)] = kept
        parents = random_tree(source.randint(1, 12), turn)
        tokens, path = text(len(parents), turn), random_path(parents, turn)
        expected, got = clean.read(tokens, parents), dirty.read(tokens, parents)
        torch.testing.assert_close(got.logits, expected.logits, rtol=0.0, atol=1e-6)
        clean.commit(path)
        dirty.commit(path)
    assert clean.length > 2 * clean.cache.slots or clean.cache.slots == 212


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_a_full_rewind_behind_a_rejected_step(name: str) -> None:
    """The largest rejected draft, then the largest rewind: the ring must still hold the whole window."""
    decoder = decoder_of(tiny(name))
    session, tokens = decoder.open(300, 12), text(90)
    feed(session, tokens, 12)
    session.read(text(12, 5), chain(12))
    session.commit(())
    session.rewind(90 - 12)
    assert_stored(session, tokens[:78], decoder)


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_what_does_not_fit_is_refused_before_anything_is_written(name: str) -> None:
    """A step that is refused half-way would leave a text that was never fed."""
    session = decoder_of(tiny(name)).open(60, 8)
    feed(session, text(60), 8)
    session.read(text(8), chain(8))
    session.commit(range(3))
    before = session.cache.data.clone()
    with pytest.raises(ModelError, match="6 tokens do not fit behind the 63"):
        session.read(text(6), chain(6))
    with pytest.raises(ModelError, match="9 tokens is too large"):
        session.read(text(9), chain(9))
    assert session.length == 63
    torch.testing.assert_close(session.cache.data, before, rtol=0.0, atol=0.0)
    session.read(text(5), chain(5))


def test_a_reset_session_is_a_new_one() -> None:
    """Sessions are used again for the next run; nothing of the old text may shine through."""
    decoder = decoder_of(tiny("mistral"))
    used, new = decoder.open(200, 8), decoder.open(200, 8)
    feed(used, text(100), 8)
    used.reset(30)
    tokens = text(30, 2)
    torch.testing.assert_close(feed(used, tokens, 8), feed(new, tokens, 8), rtol=0.0, atol=1e-6)


def test_two_sessions_do_not_meet() -> None:
    """Two texts under one model, read in turns: shared state would mix them, also in the rotation by length."""
    decoder = decoder_of(tiny("dynamic"))
    alone, first, second = (decoder.open(64, 8) for _ in range(3))
    alone.reset(40)
    first.reset(40)
    second.reset(3)
    tokens, other, logits = text(50), text(50, 1), []
    for start in range(0, 48, 8):
        logits.append(first.read(tokens[start : start + 8], chain(8)).logits)
        first.commit(range(8))
        feed(second, other[start : start + 8], 4)
    torch.testing.assert_close(torch.cat(logits), feed(alone, tokens[:48], 8), rtol=0.0, atol=0.0)


def test_the_model_may_change_after_the_decoder_was_made() -> None:
    """Training goes on after a decoder was taken; its weights must be its own."""
    model = tiny("qwen3")
    decoder, tokens = decoder_of(model), text(10)
    before = decoder.open(32, 16).read(tokens, chain(10)).logits.clone()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    torch.testing.assert_close(decoder.open(32, 16).read(tokens, chain(10)).logits, before, rtol=0.0, atol=0.0)
