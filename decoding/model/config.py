"""Reads a model's configuration, and checks it before any weight is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ModelError
from ..params import shown

NOT_THE_MODEL = ("_name_or_path", "transformers_version", "dtype", "torch_dtype")  # vary with who saved a configuration
FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "phi3")
ROPES = ("default", "linear", "dynamic", "llama3", "yarn", "longrope")
_KINDS = {"int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false"}
_LARGEST = 2**40  # beyond every size, and safe to multiply by any factor
# Bounds of a rotary embedding's settings: above the first number, at most the second.
_ROPE_BOUNDS = {
    "rope_theta": (0.0, 1e15),
    "partial_rotary_factor": (0.0, 1.0),
    **dict.fromkeys(("factor", "low_freq_factor", "high_freq_factor", "attention_factor"), (0.0, 1e6)),
    **dict.fromkeys(("beta_fast", "beta_slow", "mscale", "mscale_all_dim"), (-1.0, 1e6)),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes and switches of a Llama-family model."""

    family: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    rotary: int  # leading dimensions of a head that are rotated
    vocabulary: int
    context: int  # tokens before any scaling of the rotary embedding
    reach: int  # tokens that the model can be used for
    eps: float
    rope: str
    windows: tuple[int | None, ...]  # per layer; None sees the whole text
    tied: bool
    qkv_bias: bool
    out_bias: bool
    mlp_bias: bool
    qk_norm: bool

    @property
    def repeats(self) -> int:
        """Count the query heads that share one key/value head."""
        return self.heads // self.kv_heads

    @property
    def window(self) -> int | None:
        """Return the smallest sliding window among the layers."""
        return min((window for window in self.windows if window is not None), default=None)

    @property
    def rolling(self) -> int | None:
        """Return the largest sliding window if every layer has one."""
        return None if None in self.windows else max(window or 0 for window in self.windows)

    def tensors(self, tied: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
        """List names and shapes of the weights, in the order of transformers' files."""
        yield "model.embed_tokens.weight", (self.vocabulary, self.hidden)
        for index in range(self.layers):
            for name, shape in self.layer_tensors():
                yield f"model.layers.{index}.{name}", shape
        yield "model.norm.weight", (self.hidden,)
        if not tied:
            yield "lm_head.weight", (self.vocabulary, self.hidden)

    def layer_tensors(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """List names and shapes of one layer's weights."""
        query, key, wide = self.heads * self.head_dim, self.kv_heads * self.head_dim, self.intermediate
        fused = self.family == "phi3"
        inner = {"qkv": query + 2 * key} if fused else {"q": query, "k": key, "v": key}
        for name, rows in inner.items():
            yield from _linear(f"self_attn.{name}_proj", rows, self.hidden, self.qkv_bias)
        yield from _linear("self_attn.o_proj", self.hidden, query, self.out_bias)
        if self.qk_norm:
            yield "self_attn.q_norm.weight", (self.head_dim,)
            yield "self_attn.k_norm.weight", (self.head_dim,)
        for name, rows in ({"gate_up": 2 * wide} if fused else {"gate": wide, "up": wide}).items():
            yield from _linear(f"mlp.{name}_proj", rows, self.hidden, self.mlp_bias)
        yield from _linear("mlp.down_proj", self.hidden, wide, self.mlp_bias)
        yield "input_layernorm.weight", (self.hidden,)
        yield "post_attention_layernorm.weight", (self.hidden,)


def _linear(name: str, rows: int, columns: int, bias: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (rows, columns)
    if bias:
        yield f"{name}.bias", (rows,)


def has_decoder(config: Mapping[str, Any]) -> bool:
    """Return True if a model with that config.json runs in our decoder."""
    return config.get("model_type") in FAMILIES and config.get("quantization_config") is None


def plain_reason(error: Exception) -> str:
    """Return the reason why transformers refused a configuration, without the names of its checks."""
    text = " ".join(str(error).split())
    if match := re.search(r"Field '(\w+)' expected (\w+), got \w+ \(value: (.{1,40}?)\)", text):
        return f"{match[1]} must be {_KINDS.get(match[2], match[2])}, not {match[3]}"
    return text.rpartition("Error: ")[2].rstrip(".")[:200]


def read_shape(config: Any) -> Shape:
    """Check a transformers configuration, and return the sizes and switches that the decoder needs."""
    family = config.model_type
    if family not in FAMILIES:
        raise ModelError(f"models of type {str(family)[:40]!r} cannot be run; supported are {', '.join(FAMILIES)}")
    if getattr(config, "quantization_config", None) is not None:
        raise ModelError("quantised weights cannot be run; use the model's float32, float16 or bfloat16 weights")
    if config.hidden_act not in ("silu", "swish"):
        raise ModelError(f"the activation {str(config.hidden_act)[:40]!r} cannot be run; supported is silu")
    heads = _size(config, "num_attention_heads")
    kv_heads = _size(config, "num_key_value_heads")
    if heads % kv_heads:
        raise ModelError(f"{heads} attention heads cannot share {kv_heads} key/value heads; check config.json")
    explicit = getattr(config, "head_dim", None) is not None
    head_dim = _size(config, "head_dim") if explicit else _size(config, "hidden_size") // heads
    rope, rotary = _rope(config, family, head_dim)
    context = _size(config, "max_position_embeddings")
    attention_bias = bool(getattr(config, "attention_bias", False))
    return Shape(
        family=family,
        layers=_size(config, "num_hidden_layers"),
        hidden=_size(config, "hidden_size"),
        intermediate=_size(config, "intermediate_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        rotary=rotary,
        vocabulary=_size(config, "vocab_size"),
        context=context,
        reach=_reach(config, rope, context),
        eps=_real("rms_norm_eps", getattr(config, "rms_norm_eps", None), 0.0, 1.0),
        rope=rope,
        windows=_windows(config, family),
        tied=bool(config.tie_word_embeddings),
        qkv_bias=family == "qwen2" or (family in ("llama", "qwen3") and attention_bias),
        out_bias=family in ("llama", "qwen3") and attention_bias,
        mlp_bias=family == "llama" and bool(getattr(config, "mlp_bias", False)),
        qk_norm=family == "qwen3",
    )


def _size(config: Any, name: str) -> int:
    return _whole(name, getattr(config, name, None))


def _whole(name: str, value: object) -> int:
    if type(value) is not int or not 1 <= value <= _LARGEST:
        raise ModelError(f"{name} in config.json must be a whole number from 1 to {_LARGEST}, not {shown(value)}")
    return value


def _real(name: str, value: object, above: float, most: float) -> float:
    # NaN is within no bounds.
    if isinstance(value, bool) or not isinstance(value, int | float) or not above < value <= most:
        raise ModelError(
            f"{name} in config.json must be a number above {above:g} and at most {most:g}, not {shown(value)}"
        )
    return float(value)


def _rope(config: Any, family: str, head_dim: int) -> tuple[str, int]:
    """Return the kind of rotary embedding and the dimensions it rotates."""
    parameters = getattr(config, "rope_parameters", None) or {}
    kind = parameters.get("rope_type", "default")
    if kind not in ROPES:
        raise ModelError(f"the rotary embedding {str(kind)[:40]!r} cannot be run; supported are {', '.join(ROPES)}")
    for name, (above, most) in _ROPE_BOUNDS.items():
        if parameters.get(name) is not None:
            _real(name, parameters[name], above, most)
    if kind in ("llama3", "yarn", "longrope"):
        _whole("original_max_position_embeddings", parameters.get("original_max_position_embeddings"))
    share = float(parameters.get("partial_rotary_factor") or 1.0)
    rotary = int(head_dim * share)
    if rotary < 2 or rotary % 2 or head_dim % 2 or (share != 1.0 and family != "phi3"):
        raise ModelError(f"rotating {rotary} of a head's {head_dim} dimensions cannot be run; check config.json")
    return kind, rotary


def _reach(config: Any, rope: str, context: int) -> int:
    """Return the context that the rotary embedding is scaled to; for llama3 and longrope that is `context`."""
    if rope not in ("linear", "dynamic", "yarn"):
        return context
    parameters = config.rope_parameters
    unscaled: int = parameters["original_max_position_embeddings"] if rope == "yarn" else context
    return max(context, int(unscaled * (parameters.get("factor") or 1.0)))


def _windows(config: Any, family: str) -> tuple[int | None, ...]:
    """Return every layer's sliding window."""
    layers = _size(config, "num_hidden_layers")
    window = None if family == "llama" else getattr(config, "sliding_window", None)
    if window is None:
        return (None,) * layers
    window = _size(config, "sliding_window")
    if family in ("mistral", "phi3"):
        return (window,) * layers
    kinds = config.layer_types
    if len(kinds) != layers or not set(kinds) <= {"sliding_attention", "full_attention"}:
        raise ModelError("layer_types in config.json must name full_attention or sliding_attention for every layer")
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)
