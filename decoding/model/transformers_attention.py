"""Lets transformers' own modules attend to our cache: their keys and values go in, a tree's mask hides the rest.

Two functions are registered with transformers as `TREE`. One makes the mask of a kind of layers, from the model's rule
for which position sees which (causal, a sliding window, chunks). The other is called by every attention module. Both
work on the pass that runs in their thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from ..errors import ModelError
from .transformers_pass import running

TREE = "specscope_tree"

# Further arguments of modules that have no effect here: the mask includes them already, or they concern training, other
# kernels or unused outputs.
_HARMLESS = frozenset(
    {
        *("attention_mask", "cache_position", "position_embeddings", "position_ids", "sliding_window", "is_causal"),
        *("cu_seq_lens_k", "cu_seq_lens_q", "cu_seqlens", "max_length_k", "max_length_q", "target_dtype"),
        *("deterministic", "dropout", "head_mask", "logits_to_keep", "past_key_values", "return_dict", "use_cache"),
        *("output_attentions", "output_hidden_states", "output_router_logits"),
    }
)


def make_mask(*_: Any, mask_function: Callable[..., torch.Tensor], local_size: int | None = None, **others: Any) -> Any:
    """Make the mask of one kind of layers; called by transformers."""
    return running().mask(mask_function, local_size)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,  # (1, heads, T, D)
    key: torch.Tensor,  # (1, kv_heads, T, D)
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:  # (1, T, heads, D)
    """Compute the attention of one module to the text and the tree; called by transformers."""
    if unknown := sorted(name for name, what in others.items() if what is not None and name not in _HARMLESS):
        raise ModelError(f"its attention asks for {unknown[0][:40]}, which a tree cannot give")
    if attention_mask is None:
        raise ModelError("its attention is not causal")
    keys, values = running().store(key, value)
    if softcap is None and s_aux is None:
        shared = query.shape[1] != keys.shape[1]
        mixed = scaled_dot_product_attention(query, keys, values, attention_mask, scale=scaling, enable_gqa=shared)
    else:
        mixed = _mix(query, keys, values, attention_mask, scaling, softcap, s_aux)
    return mixed.transpose(1, 2).contiguous(), None


def _mix(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    seen: torch.Tensor,
    scaling: float | None,
    softcap: float | None,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Compute attention with a soft cap or with sinks, which take a share but have no values: torch has no kernel."""
    repeats = query.shape[1] // keys.shape[1]
    keys, values = (part.repeat_interleave(repeats, 1) for part in (keys, values))
    scores = query @ keys.transpose(2, 3) * (query.shape[3] ** -0.5 if scaling is None else scaling)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~seen, -torch.inf) if seen.dtype == torch.bool else scores + seen
    if sinks is not None:
        scores = torch.cat((scores, sinks.view(1, -1, 1, 1).expand(-1, -1, scores.shape[2], -1)), 3)
    shares = scores.softmax(3, dtype=torch.promote_types(scores.dtype, torch.float32)).to(values.dtype)
    return shares[..., : keys.shape[2]] @ values


def register() -> None:
    """Register both functions with transformers."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(TREE, attend)
    AttentionMaskInterface.register(TREE, make_mask)
