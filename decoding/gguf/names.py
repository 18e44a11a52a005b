"""Translates GGUF's names of sizes and weights in the Llama family to those of transformers."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ..errors import ModelError
from ..types import JSON
from .file import GgufFile

# Architectures that can be run, and their classes in transformers. Mistral's files call themselves Llama's.
FAMILIES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
}
_WEIGHTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_ROPE_FACTORS = "rope_freqs.weight"
_LLAMA_3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def weight_name(name: str, family: str) -> str | None:
    """Return the name of a weight in transformers; None for a tensor that is not a weight of the family."""
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    block, _, rest = name.partition(".")
    layer, _, rest = rest.partition(".")
    part, _, kind = rest.partition(".")
    if block != "blk" or not layer.isdecimal() or part not in _WEIGHTS or kind not in ("weight", "bias"):
        return None
    theirs = "mlp.gate_up_proj" if family == "phi3" and part == "ffn_up" else _WEIGHTS[part]
    return f"model.layers.{int(layer)}.{theirs}.{kind}"


def rotate_halves(name: str, config: dict[str, JSON]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a reordering of a weight: llama.cpp rotates adjacent rows of Llama's queries and keys, we halves."""
    heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}.get(name.split(".")[-2])
    if heads is None or config["model_type"] != "llama":
        return lambda tensor: tensor

    def reorder(tensor: torch.Tensor) -> torch.Tensor:
        pairs = tensor.view(config[heads], -1, 2, *tensor.shape[1:])
        return pairs.transpose(1, 2).reshape(tensor.shape)

    return reorder


def make_config(file: GgufFile) -> dict[str, JSON]:
    """Make config.json from the metadata. Reading the configuration later refuses what is missing or wrong."""
    family = file.architecture
    if family not in FAMILIES:
        raise ModelError(f"GGUF models of type {family!r} cannot be run; supported are {', '.join(FAMILIES)}")

    def value(key: str, otherwise: JSON = None) -> JSON:
        return file.metadata.get(f"{family}.{key}", otherwise)

    heads = value("attention.head_count")
    embedding = file.tensors.get("token_embd.weight")
    config: dict[str, JSON] = {
        "model_type": family,
        "architectures": [FAMILIES[family]],
        "vocab_size": embedding.shape[0] if embedding else None,
        "hidden_size": value("embedding_length"),
        "intermediate_size": value("feed_forward_length"),
        "num_hidden_layers": value("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": value("attention.head_count_kv", heads),
        "max_position_embeddings": value("context_length"),
        "rms_norm_eps": value("attention.layer_norm_rms_epsilon"),
        "hidden_act": "silu",
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "bos_token_id": file.metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": file.metadata.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": None,  # phi3 assumes one that need not be in the vocabulary
        "rope_parameters": _rope(file, value),
    }
    size = value("attention.key_length", value("rope.dimension_count") if family == "llama" else None)
    if size is not None:
        config["head_dim"] = size
    if family == "phi3":
        config["sliding_window"] = value("attention.sliding_window")
    if family == "llama":
        config["attention_bias"] = "blk.0.attn_q.bias" in file.tensors
        config["mlp_bias"] = "blk.0.ffn_down.bias" in file.tensors
    return config


def _rope(file: GgufFile, value: Callable[..., JSON]) -> dict[str, JSON]:
    base = value("rope.freq_base", 10_000.0)
    rope: dict[str, JSON] = {"rope_type": "default", "rope_theta": base}
    kind = value("rope.scaling.type", "none")
    if _ROPE_FACTORS in file.tensors:
        return rope | _llama_3(file, base)
    if any(name.startswith("rope_factors_") for name in file.tensors) or kind not in ("none", "linear", "yarn"):
        raise ModelError(
            f"{file.name} scales its rotary embedding in a way that cannot be read from GGUF: use safetensors"
        )
    if kind != "none":
        rope |= {"rope_type": kind, "factor": value("rope.scaling.factor")}
    if kind == "yarn":
        rope["original_max_position_embeddings"] = value("rope.scaling.original_context_length")
    if file.architecture == "phi3":
        size, heads, rotated = value("embedding_length"), value("attention.head_count"), value("rope.dimension_count")
        if all(type(number) is int and number > 0 for number in (size, heads, rotated)):
            rope["partial_rotary_factor"] = rotated / (size // heads or 1)
    return rope


def _llama_3(file: GgufFile, base: object) -> dict[str, JSON]:
    """Return Llama 3's scaling. The file holds the divisor of each frequency, not the rule that made it."""
    factors = file.get(_ROPE_FACTORS, torch.float64).flatten()
    factor = float(factors.max())
    if isinstance(base, float) and math.isfinite(base) and base > 0 and len(factors) <= 2**16:
        powers = torch.arange(len(factors), dtype=torch.float64) / len(factors)
        turns = _LLAMA_3["original_max_position_embeddings"] / (2 * math.pi * base**powers)
        low, high = _LLAMA_3["low_freq_factor"], _LLAMA_3["high_freq_factor"]
        share = ((turns - low) / (high - low)).clamp(0.0, 1.0)
        if torch.allclose(1.0 / ((1.0 - share) / factor + share), factors, rtol=1e-3):
            return {"rope_type": "llama3", "factor": factor, **_LLAMA_3}
    raise ModelError(f"{file.name} scales its rotary embedding by a rule that is not Llama 3's: use safetensors")
