"""The configuration of an adapter, as in its config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from ..errors import ParamError
from ..model.config import Shape
from ..params import Params, param

# The paper's Table 2 as the first words of the weights' names. The sums of its parameters fix all sizes.
ARCHITECTURES: Mapping[str, frozenset[str]] = {
    "kangaroo": frozenset({"input_layernorm", "self_attn", "norm"}),
    "kangaroo_head": frozenset({"input_layernorm", "self_attn", "norm", "lm_head"}),
    "transformer": frozenset({"input_layernorm", "self_attn", "post_attention_layernorm", "mlp", "norm"}),
    "mlp_only": frozenset({"input_layernorm", "linear", "norm", "lm_head"}),
}
_MOST = 2**24


@dataclass(frozen=True, slots=True)
class AdapterConfig(Params):
    """Sizes and switches of an adapter, and the model that it was trained for."""

    exit_layer: int = param(2, label="Exit layer", symbol="l", help="Target layers before the adapter", min=1, max=4096)
    architecture: str = param(
        "kangaroo", label="Architecture", help="Variant, as in the paper's Table 2", choices=tuple(ARCHITECTURES)
    )
    heads: int = param(32, label="Heads", help="Attention heads", min=1, max=4096)
    kv_heads: int = param(32, label="Key/value heads", help="Key/value heads", min=1, max=4096)
    head_dim: int = param(128, label="Head size", help="Dimensions per head", min=2, max=4096)
    intermediate: int = param(11008, label="Width", help="Width of the feed-forward part", min=1, max=_MOST)
    eps: float = param(1e-6, label="Epsilon", help="Epsilon of the norms", min=1e-12, max=1.0)
    rope_theta: float = param(1e4, label="RoPE base", help="Base of the rotary embedding", min=1.0, max=1e15)
    window: int = param(0, label="Window", help="Sliding window in tokens (0: none)", min=0, max=_MOST)
    base_model: str = param("", label="Model", help="Model that it was trained for")
    base_hash: str = param("", label="Hash", help="Hash of that model; empty fits any model of its sizes")

    def check(self) -> None:
        """Refuse heads that cannot be shared or rotated."""
        if self.heads % self.kv_heads or self.head_dim % 2:
            sizes = f"{self.heads}, {self.kv_heads} and {self.head_dim}"
            raise ParamError(f"heads must be a multiple of kv_heads, and head_dim even, not {sizes}")

    @classmethod
    def fit(cls, shape: Shape, exit_layer: int, architecture: str = "kangaroo") -> Self:
        """Make an adapter of the model's sizes, whose window is the largest of the layers'."""
        window = 0 if None in shape.windows else max(window or 0 for window in shape.windows)
        sizes = (shape.heads, shape.kv_heads, shape.head_dim, shape.intermediate)
        return cls(exit_layer, architecture, *sizes, eps=shape.eps, window=window)

    def tensors(self, hidden: int, vocabulary: int) -> dict[str, tuple[int, ...]]:
        """Return names and shapes of the weights."""
        query, key, wide = self.heads * self.head_dim, self.kv_heads * self.head_dim, self.intermediate
        every: dict[str, tuple[int, ...]] = {"lm_head": (vocabulary, hidden)}
        every |= dict.fromkeys(("input_layernorm", "post_attention_layernorm", "norm"), (hidden,))
        every |= {"self_attn.q_proj": (query, hidden), "self_attn.o_proj": (hidden, query)}
        every |= dict.fromkeys(("self_attn.k_proj", "self_attn.v_proj"), (key, hidden))
        every |= dict.fromkeys(("mlp.gate_proj", "mlp.up_proj"), (wide, hidden))
        every |= {"mlp.down_proj": (hidden, wide)}
        every |= dict.fromkeys(("linear.0", "linear.1"), (hidden, hidden))
        parts = ARCHITECTURES[self.architecture]
        return {f"{name}.weight": size for name, size in every.items() if name.split(".")[0] in parts}
