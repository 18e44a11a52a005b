"""Attention of transformers' own modules to our cache: their keys and values go in, a tree's mask decides what is seen.

Under the name `TREE` transformers finds two functions here. One makes the mask of a kind of layers, from the rule by
which the model's code says which position sees which (causal, a sliding window, chunks). The other is called by every
attention module. Both work on the pass that is going on in their thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from ..errors import ModelError
from ..tree import closure, depths
from .cache import Cache, Views
from .upload import upload

TREE = "specscope_tree"

# What modules hand over beside queries, keys and values, and that changes nothing here: the mask says it already, or
# it is about training, other kernels or outputs that nobody asks for.
_HARMLESS = frozenset(
    {
        *("attention_mask", "cache_position", "position_embeddings", "position_ids", "sliding_window", "is_causal"),
        *("cu_seq_lens_k", "cu_seq_lens_q", "cu_seqlens", "max_length_k", "max_length_q", "target_dtype"),
        *("deterministic", "dropout", "head_mask", "logits_to_keep", "past_key_values", "return_dict", "use_cache"),
        *("output_attentions", "output_hidden_states", "output_router_logits"),
    }
)


class Pass:
    """One forward pass over a tree behind a cached text, or over a text without a cache, to see what attention asks."""

    def __init__(self, cache: Cache | None, parents: tuple[int, ...], window: int | None, device: torch.device) -> None:
        """`window`: the largest sliding window, where every layer has one."""
        self._cache, self._rows = cache, len(parents)
        first = 0 if cache is None else cache.length
        start = 0 if window is None else max(0, first - window + 1)
        self.positions = upload(torch.tensor([first + depth for depth in depths(parents)]), device)  # (T,)
        self._seen_positions = torch.cat((torch.arange(start, first, device=device), self.positions))  # (P,)
        tree = upload(torch.tensor(closure(parents)), device)
        self._tree = torch.cat((tree.new_ones(len(parents), first - start), tree), 1)  # (T, P)
        self._layer = 0
        self.sizes = list[tuple[int, int, int]]()  # kv heads, and dimensions of a key and of a value, of every layer
        self.windows = set[int | None]()  # of the masks that were asked for
        if cache is not None:
            self._written, self._read = (
                cache.places(first, first + len(parents)),
                cache.places(start, first + len(parents)),
            )

    def mask(self, rule: Callable[..., torch.Tensor], window: int | None) -> torch.Tensor:  # (1, 1, T, P)
        """What the rows see: ancestors that the model's rule shows to their position."""
        self.windows.add(window)
        zero = self.positions.new_zeros(1, 1, 1, 1)
        shown = rule(zero, zero, self.positions[None, None, :, None], self._seen_positions[None, None, None, :])
        return shown & self._tree

    def store(self, key: torch.Tensor, value: torch.Tensor) -> Views:  # (1, kv_heads, T, D) each
        """Put the next layer's rows into the cache; all that some row sees comes back, (1, kv_heads, P, D) each."""
        layer, heads, sizes = self._layer, key.shape[1], (key.shape[3], value.shape[3])
        self._layer += 1
        self.sizes.append((heads, *sizes))
        if self._cache is None:
            return key, value
        both = list[torch.Tensor]()
        for kind, rows in enumerate((key, value)):
            slots = self._cache.data[layer, kind, :, :heads, : sizes[kind]]  # (slots, kv_heads, D)
            slots[self._written] = rows[0].transpose(0, 1).to(slots.dtype)
            both.append(slots[self._read].transpose(0, 1)[None].to(rows.dtype))
        return tuple(both)


_current: ContextVar[Pass | None] = ContextVar("pass", default=None)


@contextmanager
def passing(step: Pass) -> Iterator[None]:
    """Let attention in this thread work on a pass."""
    token = _current.set(step)
    try:
        yield
    finally:
        _current.reset(token)


def _running() -> Pass:
    step = _current.get()
    if step is None:
        raise ModelError("this model reads trees through a session: open one")
    return step


def make_mask(*_: Any, mask_function: Callable[..., torch.Tensor], local_size: int | None = None, **others: Any) -> Any:
    """For transformers: the mask of one kind of layers."""
    return _running().mask(mask_function, local_size)


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
    """For transformers: the attention of one module to the text and the tree."""
    if unknown := sorted(name for name, what in others.items() if what is not None and name not in _HARMLESS):
        raise ModelError(f"its attention asks for {unknown[0][:40]}, which a tree cannot give")
    if attention_mask is None:
        raise ModelError("its attention is not causal")
    keys, values = _running().store(key, value)
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
    """What torch has no kernel for: scores with a soft cap, and sinks, which take a share and give nothing."""
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
    """Make transformers find both functions."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(TREE, attend)
    AttentionMaskInterface.register(TREE, make_mask)
