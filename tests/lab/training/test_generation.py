"""Many texts at once: each must be what autoregressive decoding writes alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.model.decoder import Decoder
from decoding.model.loading import decoder_of
from lab.training.generation import Generation, SeededPrompt
from lab.training.text_batch import TextBatch
from tests.families import FAMILIES, needs_compiler, tiny
from tests.tiers import crossed, sampled

pytestmark = needs_compiler
PROMPTS = [[(7 * number + place * place) % 67 for place in range(1 + 11 * number)] for number in range(9)]
LENGTH, ENDS = 130, (3, 19)
COMPILED = [family for family in FAMILIES if family != "llama-wide-heads"]  # its heads are not whole vectors


def decoder(family: str, dtype: torch.dtype = torch.float32) -> Decoder:
    return decoder_of(tiny(family), dtype)


def alone(model: Decoder, prompt: list[int], seed: int, temperature: float) -> list[int]:
    sampling: dict[str, Any] = {"temperature": temperature, "seed": seed}
    options: dict[str, Any] = {"max_new_tokens": LENGTH - len(prompt), "end_tokens": ENDS, "record": "off"}
    return list(Engine(model, Codec()).generate(prompt, sampling=sampling, **options).ids)


@sampled
@pytest.mark.parametrize(("family", "temperature"), crossed([(family,) for family in COMPILED], [0.0, 1.0]))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_each_text_is_the_one_written_alone(family: str, temperature: float, dtype: torch.dtype) -> None:
    """Prompts of 1 to 89 tokens enter and leave four places at different times; rolling windows are passed."""
    model = decoder(family, dtype)
    generation = Generation(model, ENDS, at_once=4, length=LENGTH, temperature=temperature)
    written = dict(generation.write([SeededPrompt(prompt, seed) for seed, prompt in enumerate(PROMPTS)]))
    assert sorted(written) == [*range(len(PROMPTS))]
    for seed, prompt in enumerate(PROMPTS):
        assert written[seed] == alone(model, prompt, seed, temperature)
    if temperature:
        assert any(written[seed] != alone(model, prompt, seed + 1, temperature) for seed, prompt in enumerate(PROMPTS))


def test_a_text_sees_no_other() -> None:
    """The control: what one place holds changes nothing in another, and its own tokens do."""
    texts = TextBatch(decoder("llama"), 2, 16)
    first = texts.feed({0: [5, 6, 7], 1: [9]})
    texts.clear(0)
    texts.clear(1)
    assert torch.equal(texts.feed({0: [5, 6, 7], 1: [30, 31]})[0], first[0])
    texts.clear(0)
    assert not torch.equal(texts.feed({0: [8, 6, 7]})[0], first[0])


def test_texts_whose_rotation_depends_on_their_length_are_left_to_others() -> None:
    """The rows of a step must be rotated alike."""
    model = decoder("longrope")
    assert TextBatch.suit(model, 32) and not TextBatch.suit(model, 64)


def test_a_place_takes_no_more_than_its_length() -> None:
    texts = TextBatch(decoder("llama"), 1, 4)
    with pytest.raises(AssertionError):
        texts.feed({0: [1, 2, 3, 4, 5]})
