"""Attention of a step's rows to the keys and values in the cache.

On CUDA a step of up to `TREE_ROWS` rows goes through a kernel of our own, which reads the length of the text and the
tree's shape on the device: one recording of it serves every step of as many rows. Where that kernel does not run,
attention has two parts. All rows of a step see the text up to a multiple of `BLOCK`: that prefix needs no mask, and its
kernel may split over the keys. The rest, fewer than `BLOCK` tokens and the step's rows, is a tail of a fixed number of
slots, with a mask. So kernels meet few shapes: one for each number of rows and of blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch

from ..tree import remembered
from .cache import Cache, Views
from .kernels import TREE_ROWS, Kernels, Mixed, TreeKernel
from .queued_tree import Parents, closure_on, deepest, depths_on

BLOCK = 256  # slots: prefixes are multiples of it
# Merges attention to two parts of a text: for queries (T, repeats * kv_heads, D), returns (T, repeats * kv_heads * D).
Merge = Callable[[Mixed, Mixed, torch.Tensor], torch.Tensor]


class Span(Protocol):
    """The keys and values that a step's rows see through one kind of window."""

    def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:  # (T, repeats * kv_heads, D), kv heads innermost
        """Return the attention output of the rows, (T, repeats * kv_heads * D)."""
        ...


def recorded_width(cache: Cache, rows: int, window: int | None) -> int:
    """Return how many slots recorded work attends to for `rows` after the cached text; 0 if they do not fit."""
    slots, stop = cache.slots, cache.length + rows
    # Recorded work ignores windows, so none may hide anything yet.
    return min(slots, -(-stop // BLOCK) * BLOCK) if stop <= min(slots, window or slots) else 0


def pack(query: torch.Tensor, kv_heads: int) -> torch.Tensor:  # (T, repeats * kv_heads, D), contiguous
    """Turn the query heads that share a key/value head into further queries of it: (1, kv_heads, T * repeats, D).

    So keys and values are never repeated, and with the kv heads innermost the queries need no copy: in memory
    (T, repeats, kv_heads, D) is (T * repeats, kv_heads, D).
    """
    return query.view(1, -1, kv_heads, query.shape[-1]).transpose(1, 2)


def side_by_side(mixed: torch.Tensor, query: torch.Tensor) -> torch.Tensor:  # (1, kv_heads, T * repeats, D)
    """Concatenate a row's heads, (T, repeats * kv_heads * D), without a copy if the kernel writes that order."""
    return mixed.to(query.dtype).transpose(1, 2).reshape(query.shape[0], -1)


def merge(one: Mixed, other: Mixed, query: torch.Tensor) -> torch.Tensor:
    """Merge attention to two parts of a text as if it had been one."""
    (values, total), (others, other_total) = one, other
    share = torch.sigmoid(total - other_total)[..., None]
    return side_by_side(torch.lerp(others.to(share.dtype), values.to(share.dtype), share), query)


class Attention:
    """The attention of one model: its kernels, and cached masks of trees."""

    def __init__(
        self,
        kernels: Kernels,
        repeats: int,
        device: torch.device,
        dtype: torch.dtype,
        whole: bool = False,
        merge: Merge = merge,
    ) -> None:
        """`repeats`: the query heads per key/value head. `whole`: tails start at the beginning of the text."""
        self.kernels, self._repeats, self._device, self._dtype, self._whole = kernels, repeats, device, dtype, whole
        self._merge = merge
        # Masks belong to the model: on a device, those of a model that is gone would fill the memory.
        self.block = remembered(partial(_block, device, dtype))
        self._closure = remembered(partial(closure_on, device=device))

    @property
    def spare(self) -> int:
        """Return how many slots after the largest step a tail, or rows that pad a step, may reach into."""
        kernels = self.kernels
        return BLOCK if kernels.prefix is not None or kernels.tree is not None or self._whole else 0

    def cut(self, first: int) -> int | None:
        """Return the prefix that a pass after `first` tokens is recorded for; None: it serves every text."""
        return first - first % BLOCK if self.kernels.tree is None else None

    def span(self, cache: Cache, first: int, parents: Parents, window: int | None) -> Span:
        """Return the span of a tree whose root is at position `first`."""
        whole = self.kernels.prefix is None and self.kernels.tree is None
        if whole or not self.splits(cache, first, parents, window):
            return self.masked(cache, first, parents, window)
        if (tree := self._tree(len(parents))) is None:
            cut = first - first % BLOCK
            bias = self._bias(BLOCK + len(parents), first - cut, parents)
            return SplitSpan(self.kernels, self._merge, cache, cut, bias)
        seen = self._closure(parents) if isinstance(parents, tuple) else closure_on(parents, self._device)
        return TreeSpan(tree, cache, torch.full((1,), first, device=self._device), seen)

    def _tree(self, rows: int) -> TreeKernel | None:
        """Return the tree kernel if it takes a step of `rows` rows."""
        return self.kernels.tree if rows <= TREE_ROWS else None

    def splits(self, cache: Cache, first: int, parents: Parents, window: int | None) -> bool:
        """Return True if no window hides part of the text from a tree's rows, and its tail is contiguous."""
        if window is not None and first + deepest(parents) >= window:
            return False
        if self._tree(len(parents)) is not None:
            return first + len(parents) <= cache.slots
        if self.kernels.prefix is None and not self._whole:
            return False
        return first - first % BLOCK + BLOCK + len(parents) <= cache.slots

    def masked(self, cache: Cache, first: int, parents: Parents, window: int | None) -> MaskedSpan:
        """Return the span of text and rows within the first row's window: no other row reaches further back."""
        rows = len(parents)
        start = 0 if window is None else max(0, first - window + 1)
        below = 0 if rows == 1 else deepest(parents)
        clipped = window is not None and first + below - window >= start  # some row's window ends inside the span
        if rows == 1 and not clipped:
            return MaskedSpan(self.kernels, cache, start, first + rows, None)
        bias = self._bias(first - start + rows, first - start, parents)
        if clipped:
            assert window is not None
            depth = depths_on(parents, self._device)
            distance = torch.cat((torch.arange(start - first, 0, device=self._device), depth))  # from the root
            hidden = distance <= depth[:, None] - window
            bias.masked_fill_(hidden[:, None].expand(-1, self._repeats, -1).reshape(bias.shape), -torch.inf)
        return MaskedSpan(self.kernels, cache, start, first + rows, bias)

    def buffered(
        self, cache: Cache, cut: int | None, first: torch.Tensor, seen: torch.Tensor, ahead: int = 0
    ) -> Span:  # (1,), (T, T)
        """Return a span of which only the device knows the text's length `first` and the closure `seen`.

        Only the prefix `cut` is on the host, so it can be recorded once for many steps. `ahead`: most rows between the
        text and these.
        """
        if cut is None:
            assert self.kernels.tree is not None
            return TreeSpan(self.kernels.tree, cache, first, seen)
        rows = len(seen)
        width = BLOCK + ahead + rows
        if self._whole:
            cut, width = 0, cut + width
        before = first - cut  # keys of the tail that every row sees
        size = rows, self._repeats, self.kernels.aligned(width)
        bias = torch.full(size, -torch.inf, device=seen.device, dtype=self._dtype)
        distance = torch.arange(width, device=seen.device) - before  # from the root
        ancestors = seen.index_select(1, distance.clamp(0, rows - 1)) & (distance >= 0) & (distance < rows)
        visible = (ancestors | (distance < 0))[:, None].expand(-1, self._repeats, -1)
        bias[..., :width].masked_fill_(visible, 0.0)
        return SplitSpan(self.kernels, self._merge, cache, cut, bias.view(rows * self._repeats, -1)[:, :width])

    def _bias(self, width: int, before: int, parents: Parents) -> torch.Tensor:  # (T * repeats, width)
        """Return the bias over `before` keys that all rows see, the rows themselves, and keys that no row sees."""
        rows = len(parents)
        block = self.block(parents) if isinstance(parents, tuple) else _block(self._device, self._dtype, parents)
        aligned = self.kernels.aligned(width)
        bias = block.new_zeros(rows, self._repeats, aligned)
        bias[..., before : before + rows] = block[:, None]
        bias[..., before + rows :] = -torch.inf
        return bias.view(-1, aligned)[:, :width]


def _block(device: torch.device, dtype: torch.dtype, parents: Parents) -> torch.Tensor:  # (T, T)
    """Return the bias between the rows of a step: 0 for ancestors and themselves, -inf elsewhere."""
    unseen = ~closure_on(parents, device)
    return torch.zeros(unseen.shape, dtype=dtype, device=device).masked_fill_(unseen, -torch.inf)


class MaskedSpan:
    """All keys that any row attends to, in one call of a kernel."""

    __slots__ = ("_cache", "_kernels", "_slots", "_views", "bias")

    def __init__(self, kernels: Kernels, cache: Cache, start: int, stop: int, bias: torch.Tensor | None) -> None:
        self._kernels, self._cache, self._slots = kernels, cache, cache.slots_of(start, stop)
        self.bias = bias  # (T * repeats, P), row by row; None if all is visible
        self._views = cache.views(self._slots) if isinstance(self._slots, slice) else ()

    def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        """Return the attention output of the rows."""
        if isinstance(self._slots, slice):
            key, value = self._views[2 * layer : 2 * layer + 2]  # (1, kv_heads, P, D) each
        else:
            key, value = self._cache.gather(layer, self._slots)
        return side_by_side(self._kernels.masked(pack(query, key.shape[1]), key, value, self.bias), query)


class SplitSpan:
    """A prefix that all rows see, and a masked tail."""

    __slots__ = ("_bias", "_kernels", "_length", "_merge", "_prefix", "_tail")

    def __init__(self, kernels: Kernels, merge: Merge, cache: Cache, cut: int, bias: torch.Tensor) -> None:
        """`cut`: the length of the prefix. `bias`: (T * repeats, tail)."""
        self._kernels, self._merge, self._bias = kernels, merge, bias
        self._tail = cache.views(slice(cut, cut + bias.shape[1]))
        self._prefix: Views = ()  # left out if it has no keys, for which kernels return +inf as the logarithm
        self._length = torch.empty(0)
        if cut:
            assert kernels.prefix is not None
            self._prefix = cache.views(slice(0, cache.slots if kernels.prefix.whole else cut))
            self._length = torch.full((1,), cut, dtype=torch.int32, device=bias.device)

    def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        """Return the attention output of the rows."""
        kernels, part = self._kernels, slice(2 * layer, 2 * layer + 2)
        key, value = self._tail[part]
        packed = pack(query, key.shape[1])
        tail = kernels.tail(packed, key, value, self._bias)
        if not self._prefix:
            return side_by_side(tail[0], query)
        assert kernels.prefix is not None
        key, value = self._prefix[part]
        return self._merge(kernels.prefix.attend(packed, key, value, self._length), tail, query)


class TreeSpan:
    """The text and the rows, in one kernel that reads their sizes on the device."""

    __slots__ = ("_first", "_seen", "_tree", "_views")

    def __init__(self, tree: TreeKernel, cache: Cache, first: torch.Tensor, seen: torch.Tensor) -> None:
        """`first`: (1,) the root's slot. `seen`: (T, T) the closure of the rows."""
        self._tree, self._first, self._seen = tree, first, seen
        self._views = cache.views(slice(0, cache.slots))

    def attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        """Return the attention output of the rows."""
        key, value = self._views[2 * layer : 2 * layer + 2]
        return self._tree(query, key, value, self._first, self._seen)
