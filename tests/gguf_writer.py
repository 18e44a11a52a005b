"""Writes tiny transformers models as GGUF files, in the names and the order of rows that llama.cpp uses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter, quantize

_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_OUTSIDE = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def write(model: Any, path: Path, kind: GGMLQuantizationType = GGMLQuantizationType.F32, **more: Any) -> Path:
    """Write a model's file, its matrices quantised; `more` are further keys of its metadata, without the family."""
    config, family = model.config, model.config.model_type
    head = config.head_dim if getattr(config, "head_dim", None) else config.hidden_size // config.num_attention_heads
    rope = config.rope_parameters
    writer = GGUFWriter(path, family)
    keys = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "vocab_size": config.vocab_size,
        "rope.dimension_count": int(head * rope.get("partial_rotary_factor", 1.0)),
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    if family in ("phi3",) and config.sliding_window:
        keys["attention.sliding_window"] = config.sliding_window
    if family == "qwen3":
        keys["attention.key_length"] = head
    for name, value in keys.items():
        {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)](
            f"{family}.{name}", value
        )
    writer.add_float32(f"{family}.attention.layer_norm_rms_epsilon", config.rms_norm_eps)
    writer.add_float32(f"{family}.rope.freq_base", rope["rope_theta"])
    writer.add_uint32("tokenizer.ggml.eos_token_id", config.eos_token_id)
    state = model.state_dict()
    if config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    for name, weight in state.items():
        theirs = name
        if name in _OUTSIDE:
            theirs = _OUTSIDE[name]
        else:
            _, _, layer, rest = name.split(".", 3)
            part, _, end = rest.rpartition(".")
            theirs = f"blk.{layer}.{_NAMES[part]}.{end}"
            if family == "llama" and _NAMES[part] in ("attn_q", "attn_k"):
                heads = config.num_attention_heads if _NAMES[part] == "attn_q" else config.num_key_value_heads
                weight = weight.view(heads, 2, -1, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)
        numbers = weight.contiguous().numpy()
        if numbers.ndim == 2 and numbers.shape[1] % 32 == 0 and kind != GGMLQuantizationType.F32:
            writer.add_tensor(theirs, quantize(numbers, kind), raw_dtype=kind)
        else:
            writer.add_tensor(theirs, numbers)
    if rope.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", _llama_3(rope, head))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _llama_3(rope: dict[str, Any], head: int) -> np.ndarray:
    """Return what llama.cpp stores for Llama 3's rule: by how much each frequency is divided."""
    divisors = []
    for place in range(0, head, 2):
        length = 2 * math.pi * rope["rope_theta"] ** (place / head)
        low, high = (rope["original_max_position_embeddings"] / rope[f"{end}_freq_factor"] for end in ("low", "high"))
        if length < high:
            divisors.append(1.0)
        elif length > low:
            divisors.append(rope["factor"])
        else:
            share = (rope["original_max_position_embeddings"] / length - rope["low_freq_factor"]) / (
                rope["high_freq_factor"] - rope["low_freq_factor"]
            )
            divisors.append(1.0 / ((1.0 - share) / rope["factor"] + share))
    return torch.tensor(divisors, dtype=torch.float32).numpy()
