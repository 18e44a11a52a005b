"""How many experts a step reads under a mixture of experts, counted where it can be done by hand."""

from __future__ import annotations

from functools import cache

import torch

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.model.decoder import Decoder
from decoding.model.transformers_loading import adopt
from tests.families import tiny as of_family
from tests.model.test_transformers_model import tiny


@cache
def by_token(count: int = 1) -> Engine:
    """Six experts in each of three layers: token t is sent to expert t and those behind it; nothing else happens."""
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
        model.lm_head.weight.copy_(torch.eye(67, 32).roll(1, 0))  # behind token t comes t + 1
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
    engine = Engine(Decoder.from_transformers(of_family("llama")), Codec())
    assert [step.experts for step in engine.decode([3, 4], max_new_tokens=2, end_tokens=())] == [None, None]
    assert adopt(tiny("gpt2")).open(8, 8).read([3], (-1,)).experts is None
