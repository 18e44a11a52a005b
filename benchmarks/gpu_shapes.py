"""Make models of usual shapes with random weights, and count the bytes that decoding them reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import torch
import transformers

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.model.decoder import Decoder
from decoding.model.loading import decoder_of

from .gpu_kernels import device_ms

APART = 37  # tokens by which the prompts of two runs differ in length


def llama(vocabulary: int, width: int, inner: int, layers: int, heads: int, kv_heads: int, **more: Any) -> Any:
    """Make a configuration; weights are random."""
    return transformers.LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=32_768,
        **more,
    )


SHAPES = {
    "tiny": llama(512, 64, 128, 2, 4, 2),  # to rehearse with
    "135M": llama(49_152, 576, 1536, 30, 9, 3, tie_word_embeddings=True),  # SmolLM2's
    "1B": llama(128_256, 2048, 8192, 16, 32, 8, tie_word_embeddings=True),
    "7B": llama(32_000, 4096, 14_336, 32, 32, 8),
    "13B": llama(32_000, 5120, 13_824, 40, 40, 40),
}


class Prompts:
    """Prompts of about `tokens` tokens, each a little longer than the one before."""

    def __init__(self, vocabulary: int, tokens: int) -> None:
        self._ids = torch.randint(0, vocabulary, (tokens + 4096,)).tolist()
        self._lengths: Iterator[int] = count(tokens, APART)
        self.same = self._ids[:tokens]  # for a peer that compiles for every new length

    def next(self) -> list[int]:
        """Return the next prompt; its end differs from that of the others too."""
        length = next(self._lengths)
        return self._ids[:length]


def random_model(config: Any, device: str) -> Any:
    """Make a model with random weights on the device."""
    torch.manual_seed(0)
    with torch.device(device):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def engine(decoder: Decoder, settings: Mapping[str, str], model: Any = None) -> Engine:
    """Make an engine with settings in the environment, on the weights of `decoder`, or of `model` if given.

    Kernels for products are chosen when weights are laid out, so settings of kernels need the model.
    """
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        if model is not None:
            return Engine(decoder_of(model), Codec())
        return Engine(decoder.rewired(decoder.shape.windows, decoder.rope.parameters), Codec())
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def copy_bandwidth(device: str) -> float | None:
    """Measure the bytes per second of a large copy, read and written: the roofline of decoding."""
    if device == "cpu":
        return None
    source = torch.empty(2**30, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() / (device_ms(lambda: target.copy_(source), 20) / 1000)


def parameters(config: Any) -> int:
    """Count the weights that each pass reads: those of all layers' products, and of the output layer."""
    attention = config.hidden_size * 2 * (config.hidden_size + _kept(config))
    layer = attention + 3 * config.hidden_size * config.intermediate_size
    return int(config.num_hidden_layers * layer + config.vocab_size * config.hidden_size)


def bytes_per_step(config: Any, context: int) -> int:
    """Count the bytes of weights and cache that one autoregressive step has to read, in bf16."""
    return 2 * (parameters(config) + int(config.num_hidden_layers) * context * 2 * _kept(config))


def _kept(config: Any) -> int:
    """Return the width of a token's keys in one layer."""
    return int(config.num_key_value_heads * config.hidden_size // config.num_attention_heads)
