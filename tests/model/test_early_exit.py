"""A step in two parts, around an early exit, is the same step; a tap keeps what stood at the exit."""

from __future__ import annotations

import pytest
import torch

from decoding.model.loading import from_transformers
from decoding.model.session import ExitSession
from tests.families import tiny
from tests.toys import hashed

PROMPT = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4)  # longer than the sliding windows


def session(family: str) -> ExitSession:
    if family == "table":
        return hashed(vocabulary=67, order=3).open(64, 16)
    name, _, split = family.partition(" ")
    return from_transformers(tiny(name), torch.float64, [torch.device("cpu")] * (2 if split else 1)).open(64, 16)


def store(one: ExitSession, tokens: tuple[int, ...]) -> None:
    for start in range(0, len(tokens), 8):
        part = tokens[start : start + 8]
        one.read(part, tuple(range(-1, len(part) - 1)))
        one.commit(range(len(part)))


@pytest.mark.sampled
@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2-mixed", "table", "llama split", "qwen2-mixed split"])
@pytest.mark.parametrize("layer", [1, 2, 3])  # the second section begins with layer 2
def test_a_chain_that_enters_token_by_token_and_goes_on_is_read_as_a_whole(family: str, layer: int) -> None:
    whole, parts = session(family), session(family)
    chain = (7, 11, 13, 17)
    for one in (whole, parts):
        store(one, PROMPT)
    for kept in (2, 4, 1):  # a rejected rest leaves nothing behind
        wanted = whole.read(chain, (-1, 0, 1, 2))
        entered = torch.cat([parts.enter(chain[i : i + 1], layer, i) for i in range(4)])
        got = parts.resume(chain, (-1, 0, 1, 2), layer, entered)
        assert torch.allclose(got.logits, wanted.logits, atol=1e-9, rtol=0)
        assert torch.allclose(got.hidden, wanted.hidden, atol=1e-9, rtol=0)
        for one in (whole, parts):
            one.commit(range(kept))
    assert whole.length == parts.length == len(PROMPT) + 7


@pytest.mark.parametrize("layer", [1, 2, 3])
@pytest.mark.parametrize("family", ["mistral", "table", "mistral split"])
def test_a_tap_keeps_what_every_stored_token_had_at_the_exit(family: str, layer: int) -> None:
    one, plain = session(family), session(family)
    one.tap(layer)
    store(one, PROMPT)
    first = one.tapped()
    assert len(first) == len(PROMPT) and len(one.tapped()) == 0
    if family == "table":
        assert torch.equal(first, torch.cat([plain.enter(PROMPT[:16], layer), plain.enter(PROMPT[16:], layer, 16)]))
    one.read((7, 11, 13, 17), (-1, 0, 0, 2))
    one.commit((0, 2, 3))
    branch = one.tapped()
    store(plain, PROMPT)
    assert torch.allclose(branch, plain.enter((7, 13, 17), layer), atol=1e-9, rtol=0)
    tree = plain.enter((7, 11, 13, 17), layer, parents=(-1, 0, 0, 2))
    assert torch.allclose(branch, tree[[0, 2, 3]], atol=1e-9, rtol=0)
    one.reset(1)
    store(one, (5,))
    assert len(one.tapped()) == 1, "a new text begins anew"
    one.tap()
    store(one, (5,))
    assert len(one.tapped()) == 0


def test_rows_that_do_not_fit_are_refused_before_anything_is_written() -> None:
    from decoding.errors import ModelError

    one = session("llama")
    store(one, PROMPT)
    with pytest.raises(ModelError):
        one.enter((1,) * 3, 1, ahead=14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # in compiled code, where it is there, and in torch
@pytest.mark.parametrize("sections", [1, 2])
@pytest.mark.parametrize("taps", [(0, 2), (1, 2, 3), (3,)])
def test_several_layers_are_tapped_at_once(dtype: torch.dtype, taps: tuple[int, ...], sections: int) -> None:
    """Layer 0 is entered by the embeddings; what would enter a layer after the last leaves that one."""
    model = from_transformers(tiny("mistral"), dtype, [torch.device("cpu")] * sections)
    one, plain = model.open(64, 16), model.open(64, 16)
    one.tap(*taps)
    store(one, PROMPT)
    store(plain, PROMPT)
    assert one.tapped().shape == (len(PROMPT), len(taps) * model.shape.hidden)
    tree = (7, 11, 13, 17), (-1, 0, 0, 2)
    assert torch.equal(one.read(*tree).logits, plain.read(*tree).logits)
    one.commit((0, 2, 3))
    wanted = torch.cat([plain.enter((7, 13, 17), layer) for layer in taps], 1)
    assert torch.allclose(one.tapped(), wanted, atol=1e-5, rtol=0)
