"""One forward pass of a transformers model over a tree: its access to our cache, and the states recorded.

Modules have no argument for it: they look up the pass that runs in their thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from ..errors import ModelError
from .cache import Cache, Views
from .queued_tree import Parents, closure_on, depths_on


class ModulePass:
    """A forward pass over a tree after a cached text, or without a cache, to learn the sizes of attention."""

    def __init__(
        self,
        cache: Cache | None,
        parents: Parents,
        window: int | None,
        device: torch.device,
        taps: tuple[int, ...] = (),
    ) -> None:
        """`window`: the largest sliding window, if every layer has one. `taps`: layers whose input is recorded."""
        self._cache, self.taps = cache, taps
        first = 0 if cache is None else cache.length
        start = 0 if window is None else max(0, first - window + 1)
        self.positions = depths_on(parents, device) + first  # (T,)
        self._seen_positions = torch.cat((torch.arange(start, first, device=device), self.positions))  # (P,)
        tree = closure_on(parents, device)
        self._tree = torch.cat((tree.new_ones(len(parents), first - start), tree), 1)  # (T, P)
        self._layer = 0
        self.sizes = list[tuple[int, int, int]]()  # kv heads, and dimensions of a key and of a value, of every layer
        self.windows = set[int | None]()  # of the masks made
        self.states = dict[int, torch.Tensor]()  # the inputs of tapped layers, (T, H) each
        self.hidden = torch.empty(0, 0)  # the output layer's input, (R, H)
        self.experts = list[torch.Tensor]()  # that the rows used, for each layer with experts
        if cache is not None:
            stop = first + len(parents)
            self._written, self._read = cache.slots_of(first, stop), cache.slots_of(start, stop)

    def mask(self, rule: Callable[..., torch.Tensor], window: int | None) -> torch.Tensor:  # (1, 1, T, P)
        """Return which keys the rows see: ancestors that the model's rule allows at their position."""
        self.windows.add(window)
        zero = self.positions.new_zeros(1, 1, 1, 1)
        shown = rule(zero, zero, self.positions[None, None, :, None], self._seen_positions[None, None, None, :])
        return shown & self._tree

    def store(self, key: torch.Tensor, value: torch.Tensor) -> Views:  # (1, kv_heads, T, D) each
        """Write the next layer's rows to the cache; return the keys and values in reach, (1, kv_heads, P, D) each."""
        layer, heads, sizes = self._layer, key.shape[1], (key.shape[3], value.shape[3])
        self._layer += 1
        self.sizes.append((heads, *sizes))
        if self._cache is None:
            return key, value
        views = list[torch.Tensor]()
        for kind, rows in enumerate((key, value)):
            slots = self._cache.data[layer, kind, :, :heads, : sizes[kind]]  # (slots, kv_heads, D)
            slots[self._written] = rows[0].transpose(0, 1).to(slots.dtype)
            views.append(slots[self._read].transpose(0, 1)[None].to(rows.dtype))
        return tuple(views)


_current: ContextVar[ModulePass | None] = ContextVar("pass", default=None)


@contextmanager
def passing(step: ModulePass) -> Iterator[None]:
    """Let the model's modules in this thread work on `step` during the block."""
    token = _current.set(step)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> ModulePass | None:
    """Return the pass that runs in this thread."""
    return _current.get()


def running() -> ModulePass:
    """Return the pass that runs in this thread; ModelError if there is none."""
    if (step := current()) is None:
        raise ModelError("this model reads trees through a session: open one")
    return step
