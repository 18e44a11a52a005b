"""Attention of a step's rows to the keys and values in the cache."""

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention


def attend(
    query: torch.Tensor,  # (T, repeats * kv_heads, D), kv heads innermost
    key: torch.Tensor,  # (1, kv_heads, P, D)
    value: torch.Tensor,  # (1, kv_heads, P, D)
    bias: torch.Tensor | None,  # (T * repeats, P) in the query's dtype, row by row; None where all is visible
) -> torch.Tensor:  # (T, repeats * kv_heads * D)
    """Softmax attention. The query heads that share a key/value head go in as further queries of that head.

    So keys and values are never repeated, and with the kv heads innermost neither going in nor coming out needs a
    copy: (T, repeats, kv_heads, D) is (T * repeats, kv_heads, D) as it lies in memory.
    """
    rows = query.shape[0]
    _, kv_heads, _, size = key.shape
    packed = query.reshape(1, -1, kv_heads, size).transpose(1, 2)  # (1, kv_heads, T * repeats, D)
    mixed = scaled_dot_product_attention(packed, key, value, attn_mask=bias)
    return mixed.transpose(1, 2).reshape(rows, -1)
