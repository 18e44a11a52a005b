"""Tier 1 on real decoders: tiny random transformers models, against transformers' own `generate`.

The default tier runs every setting of a method on one family, in turn; `--all` runs every setting on another one too.
What the shape of a method's trees cannot change, it tests with few settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
import torch

from decoding.engine import Engine
from tests.families import YARN, needs_compiler, tiny
from tests.families import machine as with_parts
from tests.tiers import crossed, few, sampled
from tests.toys import CASES, COPYING, title

Params = Mapping[str, Any]
FAMILIES = ("llama", "mistral", "qwen2-mixed")  # full attention, a rolling window shorter than the text, both
PENALTY = 1.3
# Rotary embeddings that stretch a context of 32 tokens.
SCALED: Mapping[str, Mapping[str, Any]] = {
    "dynamic": {},
    "longrope": {},
    "linear": {"max_position_embeddings": 32},
    "yarn": {
        "max_position_embeddings": 32,
        "rope_parameters": {**YARN, "original_max_position_embeddings": 16},
    },
}


def seeds_of(method: str, params: Params) -> tuple[int, int]:
    """Return the prompts of a case: one in turn, and the one with a penalty, which is read in chunks."""
    return CASES.index((method, params)) % 3, 3


@cache
def machine(family: str) -> Engine:
    """Make an engine on a family's tiny model."""
    return with_parts(family, **SCALED.get(family, {}))


def prompt_for(seed: int) -> tuple[int, ...]:
    """Return a prompt of 1 to 30 tokens, half of it repeated."""
    source = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 67, (1 + 4 * (seed % 5),), generator=source).tolist()
    return tuple(ids + ids[: 3 * (seed % 5)])


@cache
def generated(
    family: str, prompt: tuple[int, ...], penalty: float = 1.0, count: int = 26, end: int | None = None
) -> tuple[int, ...]:
    """Return what transformers writes greedily."""
    model = tiny(family, **SCALED.get(family, {}))  # a new one: dynamic scaling remembers the longest text so far
    model.generation_config.eos_token_id = end
    ids = torch.tensor([prompt])
    options: dict[str, Any] = {"do_sample": False, "max_new_tokens": count, "repetition_penalty": penalty}
    # Some versions of transformers lose the text when they read it anew; without a cache there is nothing to lose.
    options["use_cache"] = family != "longrope"
    out: Sequence[int] = model.generate(ids, attention_mask=torch.ones_like(ids), **options)[0].tolist()
    return tuple(out[len(prompt) :])


@sampled
@pytest.mark.parametrize(("method", "params", "family"), crossed(CASES, FAMILIES), ids=title)
def test_greedy_text_is_what_transformers_writes(method: str, params: Params, family: str) -> None:
    """A rejected draft left in the cache, a wrong mask or position, a penalty that forgets the path."""
    for seed in seeds_of(method, params):
        prompt, penalty = prompt_for(seed), PENALTY if seed % 4 == 3 else 1.0
        budget = 1 + 7 * seed % 26
        options: dict[str, Any] = {"params": params, "max_new_tokens": budget, "prefill_chunk": (512, 5)[seed % 2]}
        sampling = {"repetition_penalty": penalty}
        result = machine(family).generate(prompt, method, sampling=sampling, record="off", **options)
        assert result.ids == generated(family, prompt, penalty)[:budget], f"seed {seed}"


def words(length: int) -> tuple[int, ...]:
    """Return a prompt of that length, the second half of which says much of the first again."""
    ids = torch.randint(3, 67, (length,), generator=torch.Generator().manual_seed(length)).tolist()
    return tuple(ids[: length - length // 3] + ids[: length // 3])


@sampled
@pytest.mark.parametrize(("method", "params", "family"), few(1, crossed(CASES, ["longrope", "dynamic"])), ids=title)
def test_text_that_outgrows_its_rotation(method: str, params: Params, family: str) -> None:
    """Where the rotation depends on the text's length, a guess must not see it from another length than its own."""
    for length in (5, 28, 40):  # the 33rd token is written late, early, or stands in the prompt
        options: dict[str, Any] = {"params": params, "max_new_tokens": 32, "end_tokens": (), "record": "off"}
        result = machine(family).generate(words(length), method, **options)
        assert result.ids == generated(family, words(length), count=32), f"prompt of {length}"


@pytest.mark.parametrize("family", ["linear", "yarn", "dynamic"])
def test_the_stretched_context_can_be_used(family: str) -> None:
    """A context taken for max_position_embeddings refuses the very texts that the scaling was made for."""
    ours = machine(family)
    assert ours.model.card.context == {"linear": 128, "yarn": 64, "dynamic": 128}[family]
    result = ours.generate(words(5), max_new_tokens=45, end_tokens=())
    assert result.ids == generated(family, words(5), count=45)


@sampled
@pytest.mark.parametrize(
    ("method", "params", "family"), few(1, crossed(CASES, ["qwen3", "phi3", "qwen2-mixed"])), ids=title
)
def test_text_ends_where_transformers_ends_it(method: str, params: Params, family: str) -> None:
    """An end token within an accepted draft must cut off what was accepted after it, and not what is before."""
    for seed in (2, 4):
        prompt = prompt_for(seed)
        free = generated(family, prompt, count=40)
        end = max(set(free), key=free.index)  # the token that turns up last
        for budget in (free.index(end) + 1, 40):
            options: dict[str, Any] = {"params": params, "max_new_tokens": budget, "record": "off"}
            result = machine(family).generate(prompt, method, end_tokens=(end,), **options)
            assert result.ids == generated(family, prompt, count=40, end=end), f"seed {seed}"
            assert result.summary.finish == "end_of_text"


@sampled
@needs_compiler
@pytest.mark.parametrize(("method", "params", "family"), few(1, crossed(CASES, FAMILIES)), ids=title)
def test_bfloat16_text_is_the_autoregressive_one(method: str, params: Params, family: str) -> None:
    """Eight bits leave many near-ties; where a row's numbers depend on its neighbours, a third of the texts part."""
    coarse = in_bfloat16(family)
    for seed in seeds_of(method, params):
        prompt, penalty = prompt_for(seed), PENALTY if seed % 4 == 3 else 1.0
        options: dict[str, Any] = {"max_new_tokens": 40, "end_tokens": (), "record": "off"}
        options["sampling"] = {"repetition_penalty": penalty}
        if (family, seed) not in COARSE:
            COARSE[family, seed] = coarse.generate(prompt, **options, prefill_chunk=(512, 5)[seed % 2]).ids
        result = coarse.generate(prompt, method, params=params, **options)
        assert result.ids == COARSE[family, seed], f"seed {seed}"


COARSE: dict[tuple[str, int], tuple[int, ...]] = {}  # autoregressive texts in bfloat16, by family and seed


@cache
def in_bfloat16(family: str) -> Engine:
    """Return the same engine with coarse numbers."""
    return with_parts(family, torch.empty(0, dtype=torch.bfloat16), **SCALED.get(family, {}))


SAMPLED: dict[tuple[str, int], tuple[int, ...]] = {}  # autoregressive texts, by family and seed


@sampled
@pytest.mark.parametrize(("method", "params"), few(1, COPYING), ids=title)
def test_sampled_text_is_that_of_autoregressive_sampling(method: str, params: Params) -> None:
    """The numbers of a real forward pass differ in the last bits between step shapes; the draws must not."""
    for seed in range(len(FAMILIES)):
        family = FAMILIES[seed % len(FAMILIES)]
        sampling = {"temperature": 0.7, "top_p": 0.9, "repetition_penalty": 1.1, "seed": seed}
        options: dict[str, Any] = {"sampling": sampling, "max_new_tokens": 30, "record": "off"}
        key = (family, seed)
        if key not in SAMPLED:
            SAMPLED[key] = machine(family).generate(prompt_for(seed), "autoregressive", **options).ids
        assert machine(family).generate(prompt_for(seed), method, params=params, **options).ids == SAMPLED[key]


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
        rescored = machine(family).rescore(result.trace)
        assert (rescored.checked, rescored.exact + rescored.near_ties, rescored.violations) == (60, 60, 0)
        assert 0 < rescored.noise < 1e-2
