"""Models in transformers' own modules: our cache and masks give their logits, chunk by chunk and tree by tree."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
import transformers

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ModelError, ParamError
from decoding.model.transformers_loading import adopt
from decoding.model.transformers_model import TransformersModel
from decoding.parts import Parts
from decoding.parts.tables import build
from decoding.tree import path_to
from tests.model.texts import VOCABULARY, chain, feed, random_path, random_tree, reference, text
from tests.toys import SETTINGS

WINDOW = 12
CLOSE = {"rtol": 0.0, "atol": 1e-4}
_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 96,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_LATENT = {"kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 6}
# What differs from the common sizes.
KINDS: dict[str, dict[str, Any]] = {
    "gpt2": {},  # learnt positions, a context that ends
    "gemma2": {"query_pre_attn_scalar": 8, "attn_logit_softcapping": 1.0, "final_logit_softcapping": 3.0},
    "gemma3_text": {"query_pre_attn_scalar": 8, "layer_types": ["sliding_attention", "full_attention"] * 2},
    "olmo2": {},
    "granite": {"logits_scaling": 0.3, "attention_multiplier": 0.4, "residual_multiplier": 0.7},
    "qwen3_moe": {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    "mixtral": {"num_local_experts": 5, "num_experts_per_tok": 2},  # a window in every layer, so a rolling cache
    "gpt_oss": {"num_local_experts": 4, "num_experts_per_tok": 2},  # sinks
    "gpt_neox": {},
    "stablelm": {},
    "cohere": {"logit_scale": 1.0},
    "phi": {},
    # Keys and values of different sizes.
    "deepseek_v3": {**_LATENT, "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2,
                    "moe_intermediate_size": 16, "first_k_dense_replace": 1, "num_key_value_heads": 4, "head_dim": 4},
}  # fmt: skip
WINDOWED = {"gemma2", "gemma3_text", "mixtral", "gpt_oss"}


def config_of(kind: str, **changes: Any) -> Any:
    windows = {"sliding_window": WINDOW} if kind in WINDOWED else {}
    sizes = {**_COMMON, **windows, **KINDS.get(kind, {}), **changes}
    if kind == "gemma3_text":
        sizes["num_hidden_layers"] = 4
    return transformers.AutoConfig.for_model(kind, **sizes)


def tiny(kind: str, noise: float = 0.0, **changes: Any) -> Any:
    """Return a random model; with noise one that is a little off."""
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config_of(kind, **changes)).eval()
    source = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.15)
            weight.add_(torch.randn(weight.shape, generator=source) * noise)
    return model.requires_grad_(False)


@cache
def theirs(kind: str) -> Any:
    """Return the model as transformers runs it."""
    return tiny(kind)


@cache
def ours(kind: str) -> TransformersModel:
    """Return the same model in our hands."""
    return adopt(tiny(kind), kind)


@cache
def engine(kind: str) -> Engine:
    """Make an engine with a drafter that is a little off, and tables."""
    model = ours(kind)
    parts = {"tables": lambda progress: build(model, top=8, length=8, progress=progress)}
    return Engine(model, Codec(), adopt(tiny(kind, noise=0.02)), Parts(parts))


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_transformers(kind: str) -> None:
    """A wrong mask, window, soft cap, sink, scale or position, or a key lost between two chunks, changes some logit."""
    tokens = text(4 * WINDOW + 3)
    wanted = reference(theirs(kind), tokens)
    for chunk in (7, len(tokens)):
        torch.testing.assert_close(feed(ours(kind).open(64, chunk), tokens, chunk), wanted, **CLOSE)  # type: ignore[arg-type]


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_says_what_its_paths_say(kind: str) -> None:
    """A node that sees a sibling, a rejected row left in the cache, a position by row instead of depth."""
    session, tokens = ours(kind).open(90, 16), text(WINDOW + 2)
    feed(session, tokens, 7)  # type: ignore[arg-type]
    for turn in range(2):
        parents, guesses = random_tree(12, turn), text(12, turn)
        got = session.read(guesses, parents, skip=3)
        for node in range(3, 12):
            alone = tokens + [guesses[row] for row in path_to(parents, node)]
            torch.testing.assert_close(got.logits[node - 3], reference(theirs(kind), alone)[-1], **CLOSE)
        torch.testing.assert_close(session.read(guesses, parents, only=[4, 9]).logits, got.logits[[1, 6]], **CLOSE)
        path = random_path(parents, turn)
        session.commit(path)
        tokens = tokens + [guesses[row] for row in path]
    session.rewind(len(tokens) - 2)
    got = session.read(tokens[-2:], chain(2))
    torch.testing.assert_close(got.logits, reference(theirs(kind), tokens)[-2:], **CLOSE)


def test_only_windows_in_all_layers_let_the_cache_roll() -> None:
    """A layer that sees the whole text would lose its beginning."""
    for kind in KINDS:
        assert ours(kind).window == (WINDOW if kind in WINDOWED else None)
        assert ours(kind).rolling == (WINDOW if kind == "mixtral" else None)
    assert ours("mixtral").open(90, 4).cache.slots == WINDOW + 8


def prompt_for(length: int) -> tuple[int, ...]:
    """Return a prompt that says its first half again."""
    half = text(length - length // 2, length)
    return tuple(half + half[: length // 2])


@cache
def generated(kind: str, prompt: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return what transformers writes greedily."""
    model, ids = theirs(kind), torch.tensor([prompt])
    model.generation_config.eos_token_id = None
    out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=count)
    return tuple(out[0, len(prompt) :].tolist())


METHODS = (
    *("autoregressive", "jacobi", "lookahead", "draft_model", "prompt_lookup"),
    *("suffix", "token_recycling", "ngrammys"),
)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_text_is_what_transformers_writes(kind: str) -> None:
    """No method may change the text, whether the prompt is read in one pass or in chunks."""
    at = [*KINDS].index(kind)
    for turn in range(at, at + 2):  # two methods of each kind of model, all of them between the kinds
        method = METHODS[turn % len(METHODS)]
        length = (2, 9, 30)[turn % 3]
        options: dict[str, Any] = {"end_tokens": (), "record": "off", "prefill_chunk": (512, 5)[turn % 2]}
        params = SETTINGS[method][turn % len(SETTINGS[method])]
        result = engine(kind).generate(prompt_for(length), method, params, max_new_tokens=20, **options)
        assert result.ids == generated(kind, prompt_for(length), 20), method


@pytest.mark.parametrize("kind", ["gemma2", "gpt2"])
def test_sampled_text_is_the_autoregressive_one(kind: str) -> None:
    """Point masses write the very tokens that autoregressive sampling writes for a seed; wrong rows do not."""
    options: dict[str, Any] = {"max_new_tokens": 20, "end_tokens": (), "record": "off"}
    for seed in range(2):
        sampling = {"temperature": 1.0, "top_k": 20, "seed": seed}
        plain = engine(kind).generate(prompt_for(11), sampling=sampling, **options).ids
        for method in ("lookahead", "prompt_lookup", "jacobi"):
            params = SETTINGS[method][1]
            assert engine(kind).generate(prompt_for(11), method, params, sampling, **options).ids == plain


def test_guesses_may_reach_beyond_the_last_learnt_position() -> None:
    """A table of positions ends with the context, but the deepest guesses of the last steps are beyond it."""
    prompt = prompt_for(90)
    result = engine("gpt2").generate(prompt, "draft_model", {"gamma": 12}, max_new_tokens=6, end_tokens=())
    assert result.ids == generated("gpt2", prompt, 6)
    with pytest.raises(ParamError, match="context of 96"):
        engine("gpt2").generate(prompt, max_new_tokens=7)


def test_the_hidden_states_are_those_in_front_of_the_output_layer() -> None:
    """Heads read them: those of another row, or from in front of the final norm, guess at random."""
    tokens = text(9)
    for kind in ("gemma2", "gpt2"):
        model = ours(kind)
        got = model.open(16, 16).read(tokens, chain(9), skip=4)
        with torch.no_grad():
            wanted = theirs(kind).base_model(torch.tensor([tokens])).last_hidden_state[0, 4:]
        torch.testing.assert_close(got.hidden, wanted, **CLOSE)
        torch.testing.assert_close(model.head(got.hidden), theirs(kind).lm_head(wanted), **CLOSE)


def test_methods_that_need_layers_in_parts_are_refused_with_the_reason() -> None:
    """What runs whole modules cannot stop between two layers."""
    with pytest.raises(ParamError, match="kangaroo needs layers that can be run in two parts"):
        engine("gpt2").generate([1, 2], "kangaroo")
    assert engine("gpt2").lacks("lookahead") is None


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("gptj", "attention in a way of their own"),
        ("mamba", "carry a state from token to token"),
        ("minimax", "remember more than keys and values"),  # linear attention beside the usual one
        ("bert", "look ahead"),
        ("t5", "have an encoder"),
        ("vit", "write no text"),
    ],
)
def test_models_that_cannot_read_trees_are_refused(kind: str, reason: str) -> None:
    """Their text would be wrong without a word."""
    sizes = {"rotary_dim": 4} if kind == "gptj" else {"image_size": 32} if kind == "vit" else {}
    config = config_of(kind, **sizes)
    try:
        model = transformers.AutoModelForCausalLM.from_config(config)
    except ValueError:  # there is none
        model = transformers.AutoModel.from_config(config)
    with pytest.raises(ModelError, match=reason) as caught:
        adopt(model)
    assert len(str(caught.value)) < 300 and str(caught.value).isprintable()
