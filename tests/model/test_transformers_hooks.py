"""What is noted beside logits: the experts of a step, counted where it can be done by hand, and tapped layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.model.loading import decoder_of
from decoding.model.transformers_loading import adopt
from decoding.parts import Parts
from decoding.parts.eagle import Eagle
from decoding.parts.heads import Heads, HeadWeights
from tests.families import drafter
from tests.families import tiny as of_family
from tests.model.test_transformers_model import KINDS, ours, prompt_for, theirs, tiny
from tests.model.texts import chain, text
from tests.toys import SETTINGS


@cache
def by_token(count: int = 1) -> Engine:
    """Make a model of six experts in three layers: token t is sent to expert t and those after it."""
    model = tiny("qwen3_moe", num_experts_per_tok=count)
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(torch.eye(67, 32))
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.experts.down_proj.zero_()
            layer.mlp.gate.weight.copy_(torch.eye(6, 32))
            for expert in range(6):
                layer.mlp.gate.weight[expert, (expert - 1) % 6] = 0.5
            layer.post_attention_layernorm.weight.fill_(1.0)
        model.lm_head.weight.copy_(torch.eye(67, 32).roll(1, 0))  # after token t comes t + 1
    return Engine(adopt(model), Codec())


def test_a_reading_counts_different_experts_once() -> None:
    """A tree costs the experts that any of its rows needs, not rows times experts."""
    session = by_token().model.open(16, 8)
    for tokens, parents, experts in (
        ([4], (-1,), 1.0),
        ([0, 1, 2], (-1, 0, 1), 3.0),
        ([0, 1, 1, 5, 5], (-1, 0, 0, 1, 2), 3.0),
    ):
        assert session.read(tokens, parents).experts == experts
        assert session.read(tokens, parents, skip=len(tokens)).experts == experts


def test_two_experts_a_token_are_both_counted() -> None:
    """Tokens 0 and 1 share the expert between them."""
    session = by_token(2).model.open(16, 8)
    assert session.read([0, 1, 0], (-1, 0, 1)).experts == 3.0
    assert session.read([0, 2, 4], (-1, 0, 0)).experts == 6.0


def test_a_step_records_the_experts_of_its_pass() -> None:
    """The number belongs to the step's own rows: the first reads the prompt, later ones their tree."""
    run = by_token().decode([0, 1, 2, 0], "prompt_lookup", {"max_ngram": 1, "min_ngram": 1, "K": 2}, max_new_tokens=4)
    steps = list(run)
    for step in steps:
        fed = {0, 1, 2} if step.index == 0 else {token for token in step.tokens if token < 6}
        assert step.experts == len(fed)


def test_models_without_a_mixture_count_none() -> None:
    """A zero would be shown as a number."""
    engine = Engine(decoder_of(of_family("llama")), Codec())
    assert [step.experts for step in engine.decode([3, 4], max_new_tokens=2, end_tokens=())] == [None, None]
    assert adopt(tiny("gpt2")).open(8, 8).read([3], (-1,)).experts is None


@pytest.mark.parametrize("kind", KINDS)
def test_tapped_layers_are_those_of_transformers(kind: str) -> None:
    """A drafter on features that are those of another layer, row or token guesses at random."""
    session, tokens = ours(kind).open(32, 8), text(7)
    session.tap(0, 2, ours(kind).shape.layers)
    session.read(tokens[:5], (-1, 0, 0, 2, 3))
    session.commit([0, 2, 3])
    session.read([tokens[5], tokens[6]], (-1, 0), skip=1)
    session.commit([0])
    kept = [tokens[0], tokens[2], tokens[3], tokens[5]]
    with torch.no_grad():
        wanted = theirs(kind)(torch.tensor([kept]), output_hidden_states=True).hidden_states
        last = theirs(kind).base_model(torch.tensor([kept])).last_hidden_state[0]
    got = session.tapped().chunk(3, 1)
    torch.testing.assert_close(got[0], wanted[0][0], rtol=0.0, atol=1e-4)
    torch.testing.assert_close(got[1], wanted[2][0], rtol=0.0, atol=1e-4)
    assert got[2].shape == last.shape  # transformers shows the last layer's after the final norm
    assert len(session.tapped()) == 0
    session.reset(3)
    session.tap()
    session.read(tokens[:2], chain(2))
    session.commit([0, 1])
    assert len(session.tapped()) == 0


def _random(*size: int) -> torch.Tensor:
    return 0.2 * torch.randn(size, generator=torch.Generator().manual_seed(sum(size)))


def test_heads_and_drafters_on_features_change_no_text() -> None:
    """Both read hidden states of rows, and send trees."""
    for kind in ("qwen3_moe", "gpt2"):
        model = ours(kind)
        hidden, vocabulary = model.shape.hidden, model.shape.vocabulary
        heads = HeadWeights(_random(1, 3, hidden, hidden), _random(1, 3, hidden), _random(1, vocabulary, hidden), (1,))
        config, weights, ids = drafter(model)
        assert config.taps is not None
        parts: dict[str, Callable[[Any], Any]] = {
            "medusa": lambda progress, heads=heads, model=model: Heads(heads, model.head, "random heads"),
            "eagle": lambda progress, it=(config, weights, ids), model=model: Eagle(
                it[0], (0, 1, 3), it[1] | {"ids": it[2]}, model
            ),
        }
        engine = Engine(model, Codec(), parts=Parts(parts))
        options: dict[str, Any] = {"max_new_tokens": 16, "end_tokens": ()}
        plain = engine.generate(prompt_for(12), **options).ids
        for method in ("medusa", "eagle3"):
            for params in SETTINGS[method][:2]:
                assert engine.generate(prompt_for(12), method, params, **options).ids == plain, (kind, method)
