"""Tier 1 on real decoders: tiny random transformers models, against transformers' own `generate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
import torch

from decoding.engine import Engine
from decoding.model.decoder import Decoder
from decoding.text import Codec
from tests.families import tiny
from tests.toys import CASES, COPYING, title

Params = Mapping[str, Any]
FAMILIES = ("llama", "mistral", "qwen2-mixed")  # full attention, a rolling window shorter than the text, both
SEEDS, PENALTY = 20, 1.3


@cache
def machine(family: str) -> Engine:
    """An engine on a family's tiny model, with a drafter whose weights are a little off."""
    drafter = tiny(family)
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in drafter.parameters():
            weight.add_(0.004 * torch.randn(weight.shape, generator=noise))
    return Engine(Decoder.from_transformers(tiny(family)), Codec(), Decoder.from_transformers(drafter))


def prompt_for(seed: int) -> tuple[int, ...]:
    """A prompt of 1 to 30 tokens, half of it repeated."""
    source = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 67, (1 + 4 * (seed % 5),), generator=source).tolist()
    return tuple(ids + ids[: 3 * (seed % 5)])


@cache
def generated(family: str, prompt: tuple[int, ...], penalty: float, count: int = 26) -> tuple[int, ...]:
    """What transformers writes greedily."""
    model = tiny(family)
    model.generation_config.eos_token_id = None
    ids = torch.tensor([prompt])
    options: dict[str, Any] = {"do_sample": False, "max_new_tokens": count, "repetition_penalty": penalty}
    out: Sequence[int] = model.generate(ids, attention_mask=torch.ones_like(ids), **options)[0].tolist()
    return tuple(out[len(prompt) :])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("method", "params"), CASES, ids=title)
def test_greedy_text_is_what_transformers_writes(method: str, params: Params, family: str) -> None:
    """A rejected draft left in the cache, a wrong mask or position, a penalty that forgets the path."""
    for seed in range(SEEDS):
        prompt, penalty = prompt_for(seed), PENALTY if seed % 4 == 3 else 1.0
        budget = 1 + 7 * seed % 26
        options: dict[str, Any] = {"params": params, "max_new_tokens": budget, "prefill_chunk": (512, 5)[seed % 2]}
        sampling = {"repetition_penalty": penalty}
        result = machine(family).generate(prompt, method, sampling=sampling, record="off", **options)
        assert result.ids == generated(family, prompt, penalty)[:budget], f"seed {seed}"


@pytest.mark.parametrize(("method", "params"), COPYING, ids=title)
def test_sampled_text_is_that_of_autoregressive_sampling(method: str, params: Params) -> None:
    """The numbers of a real forward pass differ in the last bits between step shapes; the draws must not."""
    for seed in range(SEEDS):
        family = FAMILIES[seed % len(FAMILIES)]
        sampling = {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.1, "seed": seed}
        options: dict[str, Any] = {"sampling": sampling, "max_new_tokens": 30, "record": "off"}
        expected = machine(family).generate(prompt_for(seed), "autoregressive", **options)
        assert machine(family).generate(prompt_for(seed), method, params=params, **options).ids == expected.ids


@pytest.mark.parametrize("family", FAMILIES)
def test_guesses_are_accepted_and_rejected(family: str) -> None:
    """Equality proves little where no guess is ever accepted, or none ever rejected."""
    summary = machine(family).generate(prompt_for(4), "draft_model", max_new_tokens=100).summary
    assert summary.draft_acceptance_rate is not None and 0.2 < summary.draft_acceptance_rate < 0.95


@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracle_agrees(family: str) -> None:
    """The plain pass that checks runs in production must not cry wolf at rounding."""
    for method in ("draft_model", "prompt_lookup", "lookahead"):
        result = machine(family).generate(prompt_for(3), method, max_new_tokens=60)
        found = machine(family).rescore(result.trace)
        assert (found.checked, found.exact + found.near_ties, found.violations) == (60, 60, 0)
        assert 0 < found.noise < 1e-2
