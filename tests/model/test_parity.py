"""The decoder says what transformers says, for every family and rotary embedding, however the text is fed.

Twice: with the layers in compiled code, where a model's sizes suit it, and with those of torch.
"""

from __future__ import annotations

import pytest
import torch

from decoding.model.loading import decoder_of
from decoding.native import products
from decoding.tree import path_to
from tests.families import ALL, tiny
from tests.model.texts import chain, feed, random_tree, reference, text
from tests.tiers import choose, crossed, sampled

WINDOW = 16
BY_LENGTH = ("dynamic", "longrope")  # rotated by the length of the text; both change over at 32 tokens
BY_PLACE = [name for name in ALL if name not in BY_LENGTH]
CLOSE = {"rtol": 0.0, "atol": 1e-4}


@pytest.fixture(autouse=True, params=["compiled", "torch"])
def layers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose which code runs the layers."""
    if request.param == "torch":
        monkeypatch.setattr(products, "library", lambda: None)
    elif products.library() is None:
        pytest.skip("needs a C++ compiler and a processor with AVX2")


@sampled
@pytest.mark.parametrize("name", ALL)
def test_one_pass(name: str) -> None:
    """A wrong weight layout, norm, bias, rotation, scale or window mask changes some logit."""
    model = tiny(name)
    decoder = decoder_of(model)
    for length in (1, 15, 16, 17, 50):  # the longest last: dynamic scaling remembers it
        session, tokens = decoder.open(64, 64), text(length)
        session.reset(length)
        torch.testing.assert_close(session.read(tokens, chain(length)).logits, reference(model, tokens), **CLOSE)


@sampled
@pytest.mark.parametrize("name", BY_PLACE)
def test_chunks(name: str) -> None:
    """A key lost between two chunks, or a window that starts anew with each, shows after the first chunk."""
    model, tokens = tiny(name), text(3 * WINDOW + 5)
    decoder, wanted = decoder_of(model), reference(model, tokens)
    for chunk in (1, 7, WINDOW, WINDOW + 3):
        torch.testing.assert_close(feed(decoder.open(64, chunk), tokens, chunk), wanted, **CLOSE)


@sampled
@pytest.mark.parametrize("name", BY_LENGTH)
@pytest.mark.parametrize(("prompt", "chunk"), crossed([(1,), (20,), (31,), (32,), (33,), (45,)], [1, 7]))
def test_rotation_by_length(name: str, prompt: int, chunk: int) -> None:
    """Rows must be rotated as for a prompt in one pass and single tokens, also when they are fed in chunks."""
    model, tokens = tiny(name), text(60)
    session = decoder_of(model).open(64, chunk)
    session.reset(prompt)
    torch.testing.assert_close(feed(session, tokens, chunk), reference(model, tokens, prompt), **CLOSE)


@sampled
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", choose(range(2), [0]))
def test_every_row_of_a_tree_is_its_path_alone(name: str, seed: int) -> None:
    """A row that sees a cousin, misses an ancestor or is at the wrong position differs from its path alone."""
    model, prefix = tiny(name), 2 * WINDOW + 5 - 8 * seed
    before, parents = text(prefix, seed), random_tree(14, seed)
    tokens = text(len(parents), seed + 100)
    session = decoder_of(model).open(64, 16)
    session.reset(prefix)
    feed(session, before, 16)
    logits = session.read(tokens, parents, skip=3).logits
    assert len(logits) == len(parents) - 3
    some = session.read(tokens, parents, only=[4, 5, 9])
    torch.testing.assert_close(some.logits, logits[[1, 2, 6]], **CLOSE)
    for node in range(3, len(parents), 2):
        alone = before + [tokens[i] for i in path_to(parents, node)]
        theirs = reference(model, alone, prefix if name in BY_LENGTH else None)[-1]
        torch.testing.assert_close(logits[node - 3], theirs, **CLOSE)


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2-mixed"])
def test_wide_trees_past_many_windows(name: str) -> None:
    """A step wider than the window, far after several turns of the ring, must still see exactly W tokens."""
    model, parents = tiny(name), random_tree(40, 3)
    before, tokens = text(5 * WINDOW), text(40, 1)
    session = decoder_of(model).open(400, 40)
    feed(session, before, 9)
    logits = session.read(tokens, parents).logits
    for node in range(0, 40, 3):
        alone = before + [tokens[i] for i in path_to(parents, node)]
        torch.testing.assert_close(logits[node], reference(model, alone)[-1], **CLOSE)


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen3", "phi3-partial"])
def test_layer_ranges(name: str) -> None:
    """Early exit runs the layers in two parts: stopping and going on must be the whole."""
    decoder = decoder_of(tiny(name))
    whole, parts = decoder.open(64, 32), decoder.open(64, 32)
    tokens = text(20)
    reading = whole.read(tokens, chain(20))
    with torch.inference_mode():
        ids, step = parts.prepare(tokens, chain(20))
        shallow = decoder.forward(ids, step, 0, 1)
        deep = decoder.final(decoder.forward(shallow, step, 1))
        torch.testing.assert_close(decoder.head(deep), reading.logits, rtol=0.0, atol=0.0)
    torch.testing.assert_close(deep, reading.hidden, rtol=0.0, atol=0.0)
    assert not torch.equal(shallow, deep)


def test_hidden_states_are_those_in_front_of_the_head() -> None:
    """Heads trained on transformers' last hidden state must find the same one here."""
    model, tokens = tiny("llama"), text(12)
    with torch.no_grad():
        theirs = model.model(torch.tensor([tokens])).last_hidden_state[0]
    hidden = decoder_of(model).open(64, 32).read(tokens, chain(12), skip=4).hidden
    torch.testing.assert_close(hidden, theirs[4:], **CLOSE)


def test_skipping_every_row_runs_no_head() -> None:
    """Chunks of a prompt need no logits; asking for none must work and still store the text."""
    session = decoder_of(tiny("llama")).open(64, 32)
    reading = session.read(text(5), chain(5), skip=5)
    assert reading.logits.shape == (0, 67)
    assert reading.hidden.shape == (0, 64)
    session.commit(range(5))
    assert session.length == 5


@pytest.mark.parametrize("name", ["llama", "qwen2-mixed", "qwen3", "phi3"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes(name: str, dtype: torch.dtype) -> None:
    """Something computed or allocated in the wrong dtype raises, or is too coarse."""
    model, tokens = tiny(name), text(40)
    decoder = decoder_of(model, dtype)
    logits = feed(decoder.open(64, 8), tokens, 8)
    assert logits.dtype == dtype
    wide = reference(model, tokens)
    coarse = {torch.bfloat16: 0.5, torch.float16: 0.06, torch.float64: 1e-4}[dtype]
    torch.testing.assert_close(logits.to(torch.float32), wide, rtol=0.0, atol=coarse)
