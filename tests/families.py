"""Tiny random transformers models, one per family and per kind of rotary embedding."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.model.loading import decoder_of, from_transformers
from decoding.model.split import AnyDecoder
from decoding.model.transformers_model import AnyModel
from decoding.native.build import library
from decoding.parts import Parts
from decoding.parts.adapter import Adapter
from decoding.parts.adapter_config import AdapterConfig
from decoding.parts.datastore import Datastore
from decoding.parts.dflash import DFlash
from decoding.parts.dflash_config import read_dflash_config
from decoding.parts.eagle import Eagle
from decoding.parts.eagle_config import EagleConfig, read_config
from decoding.parts.heads import Heads, HeadWeights
from decoding.parts.tables import build
from tests.toy_store import open_store

needs_compiler = pytest.mark.skipif(library() is None, reason="needs a C++ compiler and a processor with AVX2")
LONG = [1.0 + 0.7 * i for i in range(8)]
SHORT = [1.0 + 0.1 * i for i in range(8)]
_WIDTH = 64  # with four heads: what the compiled code asks for
_COMMON = {
    "vocab_size": 67,
    "hidden_size": _WIDTH,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "rms_norm_eps": 1e-2,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1e4}
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
    "rope_theta": 1e4,
}

# name -> (family, what differs from the common sizes)
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama-biased": ("llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "llama-wide-heads": ("llama", {"head_dim": 24, "num_key_value_heads": 1}),
    "mistral": ("mistral", {"sliding_window": 16}),
    "mistral-full": ("mistral", {"sliding_window": None, "num_key_value_heads": 4}),
    "qwen2": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2-mixed": ("qwen2", {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1}),
    "qwen3": ("qwen3", {"head_dim": 32}),
    "phi3": ("phi3", {"sliding_window": 16}),
    "phi3-partial": ("phi3", {"partial_rotary_factor": 0.5}),
}
ROPES: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}}),
    "llama3": ("llama", {"rope_parameters": _LLAMA3}),
    "yarn": ("qwen2", {"rope_parameters": YARN}),
    "dynamic": (
        "llama",
        {
            "rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4},
            "max_position_embeddings": 32,
        },
    ),
    "longrope": (
        "phi3",
        {
            "rope_parameters": {
                "rope_type": "longrope",
                "short_factor": SHORT,
                "long_factor": LONG,
                "rope_theta": 1e4,
            },
            "original_max_position_embeddings": 32,
        },
    ),
}
ALL = {**FAMILIES, **ROPES}


def tiny(name: str, seed: int = 0, **changes: Any) -> Any:
    """Return the transformers model of that name, float32; equal seeds give equal weights."""
    import transformers

    family, differs = ALL[name]
    config = transformers.AutoConfig.for_model(family, **{**_COMMON, **differs, **changes})
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weight in model.parameters():  # unlike the usual start, nothing is zero, one, or too small to matter
            weight.add_(torch.randn_like(weight) * 0.2)
    return model.requires_grad_(False)


def near(name: str, noise: float = 0.004, **changes: Any) -> Any:
    """Return the model of that name with every weight a little off: as a drafter, it is often right and often wrong."""
    model, source = tiny(name, **changes), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(noise * torch.randn(weight.shape, generator=source))
    return model


def machine(
    name: str,
    like: torch.Tensor | None = None,
    noise: float = 0.004,
    *,
    devices: Sequence[str | torch.device] = (),
    precision: str | None = None,
    **changes: Any,
) -> Engine:
    """Make an engine with every part on the model of that name: a drafter a little off, and random heads and adapter.

    All of it on the device and in the dtype of `like`, but for a target that is split over `devices`, or in another
    `precision`.
    """
    like = torch.empty(0) if like is None else like
    model, drafter = tiny(name, **changes).to(like), near(name, noise, **changes).to(like)
    target = from_transformers(model, precision, [torch.device(device) for device in devices])
    parts = {
        "tables": lambda progress: build(target, top=8, length=8, progress=progress),
        "medusa": lambda progress: _heads(target),
        "kangaroo": lambda progress: Adapter(*adapter(target), target),
        "eagle": lambda progress: eagle(target),
        "dflash": lambda progress: dflash(target),
        "datastore": lambda progress: _store(target),
    }
    return Engine(target, Codec(), decoder_of(drafter), Parts(parts))


def _random(target: AnyModel, *size: int) -> torch.Tensor:
    source = torch.Generator().manual_seed(sum(size))
    return (0.2 * torch.randn(size, generator=source)).to(target.device, target.dtype)


def _heads(target: AnyDecoder) -> Heads:
    hidden, vocabulary = target.shape.hidden, target.card.vocabulary
    blocks = _random(target, 1, 3, hidden, hidden), _random(target, 1, 3, hidden)
    weights = HeadWeights(*blocks, output=_random(target, 1, vocabulary, hidden), with_output=(1,))
    return Heads(weights, target.head, "random heads")


def adapter(target: AnyDecoder) -> tuple[AdapterConfig, dict[str, torch.Tensor]]:
    """Return what an adapter is made of, at random."""
    config = AdapterConfig.fit(target.shape, 1)
    sizes = config.tensors(target.shape.hidden, target.card.vocabulary)
    return config, {name: _random(target, *size) for name, size in sizes.items()}


def eagle(target: AnyDecoder) -> Eagle:
    """Make a random EAGLE-3 drafter that reads three layers and cannot say every third token."""
    config, weights, ids = drafter(target)
    assert config.taps is not None
    return Eagle(config, config.taps, weights | {"ids": ids}, target, "random drafter of features")


def drafter(target: AnyModel) -> tuple[EagleConfig, dict[str, torch.Tensor], torch.Tensor]:
    """Return what it is made of."""
    shape, window = target.shape, target.shape.windows[0] if isinstance(target, AnyDecoder) else None
    layer = {
        "model_type": "llama",
        "hidden_size": shape.hidden,
        "intermediate_size": 32,
        "vocab_size": shape.vocabulary,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-2,
        **({"layer_types": ["sliding_attention"], "sliding_window": window} if window else {}),
    }
    ids = torch.tensor([token for token in range(shape.vocabulary) if token % 3])
    raw = {"speculators_model_type": "eagle3", "transformer_layer_config": layer, "draft_vocab_size": len(ids)}
    config = replace(read_config(raw), taps=(0, 1, shape.layers))
    return config, {name: _random(target, *size) for name, size in config.tensors(3).items()}, ids


def dflash(target: AnyModel) -> DFlash:
    """Make a random DFlash drafter that reads two layers, and cannot say every fourth token."""
    shape, window = target.shape, target.shape.windows[0] if isinstance(target, AnyDecoder) else None
    ids = torch.tensor([token for token in range(shape.vocabulary) if token % 4])
    raw = {
        "speculators_model_type": "dflash",
        "transformer_layer_config": {
            "model_type": "qwen3",
            "hidden_size": shape.hidden,
            "intermediate_size": 32,
            "num_hidden_layers": 2,
            "vocab_size": shape.vocabulary,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": 256,
            "rms_norm_eps": 1e-2,
            **({"layer_types": ["sliding_attention"] * 2, "sliding_window": window} if window else {}),
        },
        "draft_vocab_size": len(ids),
        "aux_hidden_state_layer_ids": [0, 2],
        "block_size": 6,
        "mask_token_id": 3,
    }
    config = read_dflash_config(raw)
    weights = {name: _random(target, *size) for name, size in config.tensors().items()}
    return DFlash(config, weights | {"ids": ids}, target, "random drafter of blocks")


def _store(target: AnyDecoder) -> Datastore:
    source = random.Random(1)
    documents = [([source.randrange(target.card.vocabulary) for _ in range(400)], True) for _ in range(4)]
    return open_store(documents, target.card.vocabulary)
