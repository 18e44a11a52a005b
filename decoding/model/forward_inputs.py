"""The inputs of a forward pass that all layers share: where rows are written, which rows they see, their rotation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import pad

from ..tree import closure, depths, is_chain, remembered
from .cache import Cache, Views
from .config import Shape
from .rope import Tables


class Span:
    """The part of the text that some row of a step sees through one kind of window."""

    __slots__ = ("_cache", "_places", "_views", "bias")

    def __init__(self, cache: Cache, start: int, stop: int, bias: torch.Tensor | None) -> None:
        places = cache.places(start, stop)
        self._cache, self.bias = cache, bias
        self._places: torch.Tensor | None = None
        self._views: Views = ()
        if isinstance(places, slice):
            self._views = cache.views(places)
        else:
            self._places = places

    def read(self, layer: int) -> Views:
        """Keys and values of one layer, the step's own included: (1, kv_heads, P, D) each."""
        if self._places is None:
            return self._views[2 * layer : 2 * layer + 2]
        return self._cache.gather(layer, self._places)


class ForwardInputs:
    """The inputs of a forward pass over a tree of tokens behind a cached text."""

    __slots__ = ("_cache", "_places", "_views", "cos", "ids", "sin", "spans")

    def __init__(
        self,
        tokens: Sequence[int],
        parents: tuple[int, ...],
        cache: Cache,
        tables: Tables,
        shape: Shape,
        ahead: int = 0,
    ) -> None:
        """`ahead` rows of a chain stand between the stored tokens and this tree."""
        device, first, rows = cache.data.device, cache.length + ahead, len(tokens)
        self.ids = torch.tensor(tokens, device=device)  # (T,)
        if is_chain(parents):
            cos, sin = tables.cos[first : first + rows], tables.sin[first : first + rows]
        else:
            positions = torch.tensor([first + depth for depth in depths(parents)], device=device)
            cos, sin = tables.cos.index_select(0, positions), tables.sin.index_select(0, positions)
        # Values go through the rotation with queries and keys, turned by nothing: that saves a copy in every layer.
        turned, still = (-1, shape.heads + shape.kv_heads, -1), (0, 0, 0, shape.kv_heads)
        self.cos = pad(cos.expand(turned), still, value=1.0)  # (T, heads + 2 kv_heads, D)
        self.sin = pad(sin.expand(turned), still)
        self._cache = cache
        self._places = cache.places(first, first + rows)
        self._views = cache.data[:, :, self._places].unbind(0) if isinstance(self._places, slice) else ()
        kinds = {window: _span(cache, first, parents, window, shape.repeats) for window in set(shape.windows)}
        self.spans = [kinds[window] for window in shape.windows]  # one per layer

    def write(self, layer: int, rows: torch.Tensor) -> None:  # (T, 2 kv_heads, D): keys, then values
        """Put one layer's keys and values of the rows behind the text."""
        pair = rows.view(rows.shape[0], 2, -1, rows.shape[2]).transpose(0, 1)  # (2, T, kv_heads, D)
        if isinstance(self._places, slice):
            self._views[layer].copy_(pair)
        else:
            self._cache.data[layer].index_copy_(1, self._places, pair)


def _span(cache: Cache, length: int, parents: tuple[int, ...], window: int | None, repeats: int) -> Span:
    """What a step behind `length` tokens sees: all of them, or those the first row's window reaches, no row further."""
    rows = len(parents)
    start = 0 if window is None else max(0, length - window + 1)
    deepest = 0 if rows == 1 else max(depths(parents))
    clipped = window is not None and length + deepest - window >= start  # the window of some row ends inside the span
    if rows == 1 and not clipped:
        return Span(cache, start, length + rows, None)
    block = _block(parents, cache.data.dtype, cache.data.device)
    bias = block.new_zeros(rows, repeats, length - start + rows)
    bias[:, :, length - start :] = block[:, None]
    if clipped:
        assert window is not None
        depth = torch.tensor(depths(parents), device=bias.device)
        place = torch.cat((torch.arange(start - length, 0, device=bias.device), depth))  # as seen from the root
        hidden = place <= depth[:, None] - window
        bias.masked_fill_(hidden[:, None], -torch.inf)
    return Span(cache, start, length + rows, bias.flatten(0, 1))


@remembered
def _block(parents: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:  # (T, T)
    """What the rows of a step see of each other: 0 for ancestors and themselves, -inf elsewhere."""
    unseen = torch.from_numpy(~closure(parents)).to(device)
    return torch.zeros(unseen.shape, dtype=dtype, device=device).masked_fill_(unseen, -torch.inf)
