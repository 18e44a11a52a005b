"""Configures drafters on features, and writes their folders in the format of the library speculators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from decoding.parts.part_files import NamedWeights
from decoding.types import JSON

from .backbone import Backbone
from .part_folder import save_part

FORMAT = "0.9.0"  # of the library whose format is written


def save_drafter(
    folder: Path, weights: NamedWeights, ids: torch.Tensor | None, vocabulary: int, config: Mapping[str, JSON]
) -> None:
    """Write a drafter of the tokens `ids` of a vocabulary, or of all."""
    mapping = dict[str, torch.Tensor]()
    if ids is not None:
        draftable = torch.zeros(vocabulary, dtype=torch.bool)
        draftable[ids] = True
        mapping = {"d2t": ids.long() - torch.arange(len(ids)), "t2d": draftable}
    save_part(folder, "model.safetensors", {**weights, **mapping}, config, {"format": "pt"})


def layer_config(backbone: Backbone, family: str, layers: int, intermediate: int | None) -> dict[str, JSON]:
    """Configure layers of the model's sizes, which see as far as its own do: further back all is new to a drafter."""
    shape, rope = backbone.shape, getattr(backbone.model.config, "rope_parameters", None) or {}
    sizes: dict[str, JSON] = {
        "model_type": family,
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": intermediate or shape.intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": shape.eps,
        "max_position_embeddings": shape.context,
        "rope_parameters": {"rope_type": "default", "rope_theta": float(rope.get("rope_theta", 1e4))},
        "attention_bias": False,
        "tie_word_embeddings": False,
    }
    if not (window := shape.rolling):
        return sizes
    return {**sizes, "layer_types": ["sliding_attention"] * layers, "sliding_window": window}
