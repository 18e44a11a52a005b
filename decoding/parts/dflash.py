"""A DFlash drafter: a few layers that fill a block of mask tokens at once, beside the target's features of the text.

A feature is made of the hidden states that enter some layers of the target at one token. Every layer of the drafter
makes keys and values of all features; nothing else of the text is read. The rows of a block, the root and mask tokens,
attend to them and to each other, in both directions unless the layer is causal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from ..model.cache import Cache
from ..model.captured import filled
from ..model.linear import linear
from ..model.native_layers import NativeInputs, NativeLayers, suits
from ..model.rope import Rope, RopeTables
from ..model.transformers_model import AnyModel
from ..model.upload import on_device
from ..model.weights import read_layer
from .dflash_config import DFlashConfig
from .feature_part import FeaturePart, FeatureSession
from .layer_math import FeatureLayers, MakeProduct, attend, norm, rotated
from .part_files import NamedWeights

if TYPE_CHECKING:
    from ..model.graphs import Outputs

# Attend in a layer: its number, and queries, keys and values of the block (..., B, heads, D) -> (..., B, heads * D).
MixBlock = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class BlockLayers(FeatureLayers):
    """The layers that fill a block."""

    def __init__(self, config: DFlashConfig, weights: NamedWeights, product: MakeProduct) -> None:
        super().__init__(config.shape, weights, product)
        layers = [f"layers.{layer}.self_attn" for layer in range(config.shape.layers)]
        self._context = self._product_of([f"{layer}.{name}_proj" for layer in layers for name in "kv"])
        self._key_norms = torch.stack([weights[f"{layer}.k_norm.weight"] for layer in layers])[:, None]

    def fuse(self, states: torch.Tensor) -> torch.Tensor:  # (..., taps * H of the target) -> (..., H)
        """Fuse the tapped states of a token into its feature."""
        return self._norm(self._fc(states), "hidden_norm")

    def remember(self, features: torch.Tensor, turn: RopeTables) -> tuple[torch.Tensor, torch.Tensor]:
        """Return every layer's keys and values of the text's features: (..., T, layers, kv_heads, D) each."""
        shape, both = self._shape, self._context(features)
        both = both.view(*both.shape[:-1], shape.layers, 2, shape.kv_heads, shape.head_dim)
        key, value = both.unbind(-3)
        turn = RopeTables(*(table.unsqueeze(-2) for table in turn))
        return rotated(norm(key, self._key_norms, shape.eps), turn).to(value.dtype), value

    def forward(self, x: torch.Tensor, turn: RopeTables, mix: MixBlock) -> torch.Tensor:  # (..., B, H)
        """Run the layers over the rows of a block, and return the output layer's input."""
        for layer, products in enumerate(self._layers):
            qkv = products["qkv"](self._norm(x, f"layers.{layer}.input_layernorm"))
            x = self._feed_forward(x + products["out"](mix(layer, *self.split(qkv, turn, layer))), layer)
        return self._norm(x, "norm")


class DFlash(FeaturePart):
    """A drafter and its target."""

    def __init__(
        self,
        config: DFlashConfig,
        weights: NamedWeights,
        model: AnyModel,
        about: str = "in memory",
        rope: Rope | None = None,  # the configuration's
    ) -> None:
        super().__init__(config.taps, weights, config.shape.head_dim, model, about)
        self.config = config
        with torch.inference_mode():
            self.block = BlockLayers(config, self._weights, linear)
            self.native = _native(config, self._weights)
        self.rope = rope or config.rope(self.device, self.dtype)

    def open(self, capacity: int, largest_step: int) -> DFlashSession:
        """Open a session for texts of up to `capacity` tokens, of which it reads up to `largest_step` at once."""
        return DFlashSession(self, capacity, largest_step)


class DFlashSession(FeatureSession):
    """One text under a drafter: the keys and values of the features of `length` tokens."""

    def __init__(self, drafter: DFlash, capacity: int, largest_step: int) -> None:
        shape = drafter.config.shape
        sizes = (shape.layers, shape.kv_heads, shape.head_dim, capacity, largest_step)
        # A block sees `window` tokens before its root, one more than a row of a decoder does.
        rolling = shape.rolling and shape.rolling + 1
        super().__init__(drafter, Cache(*sizes, rolling, drafter.device, drafter.dtype), shape.window)
        self._drafter = drafter
        self._tables = drafter.rope.tables(1, capacity + largest_step + 1)

    @torch.inference_mode()
    def read(self, states: torch.Tensor) -> None:  # (n, taps * H)
        """Read the tapped states of the next tokens of the text."""
        count, device = len(states), self._drafter.device
        self._cache.check(count)
        if width := self.width(rows := filled(count)) if filled(count) else 0:

            def work(first: torch.Tensor, states: torch.Tensor) -> Outputs:
                places = torch.arange(rows, device=device) + first.long()
                self._cache.data.index_copy_(2, places, self._remember(states, self._turned(places)))
                return ()

            if self.replays.run(("text", rows, width), (self.length,), [(states, rows)], device, work) is not None:
                self._cache.commit(range(count))
                return
        first, stop = self.length, self.length + count
        turn = RopeTables(*(table[first:stop] for table in self._tables))
        self._cache.data[:, :, self._cache.slots_of(first, stop)] = self._remember(states, turn)
        self._cache.commit(range(count))

    def _remember(self, states: torch.Tensor, turn: RopeTables) -> torch.Tensor:  # (layers, 2, n, kv_heads, D)
        block = self._drafter.block
        return torch.stack([each.transpose(0, 1) for each in block.remember(block.fuse(states), turn)], 1)

    @torch.inference_mode()
    def fill(self, root: int, guesses: int) -> torch.Tensor:  # (guesses, H)
        """Read the root and mask tokens after the text; return the output layer's input of every guess."""
        drafter, cache, config = self._drafter, self._cache, self._drafter.config
        ids = [root] + [config.mask] * (guesses - config.from_anchor)
        rows, first = len(ids), cache.length
        cache.check(rows)
        if drafter.native is not None:
            step = NativeInputs.of_block(ids, cache, self._tables, config.shape)
            return drafter.native.through(drafter.embed(ids), step)[rows - guesses :]
        stop, windows = first + rows, config.shape.windows
        turn = RopeTables(*(table[first:stop] for table in self._tables))

        def mix(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            cache.data[layer][:, cache.slots_of(first, stop)] = torch.stack((key, value))
            start = max(0, first - (windows[layer] or first))
            keys, values = cache.data[layer][:, cache.slots_of(start, stop)]
            seen = None
            if config.causal[layer]:
                seen = torch.ones(1, rows, stop - start, dtype=torch.bool, device=query.device).tril(first - start)
            return attend(query[None], keys[None], values[None], seen, drafter.kernel)[0]

        x = drafter.block.forward(drafter.embed(on_device(ids, drafter.device)), turn, mix)
        return x[rows - guesses :]

    def fill_behind(self, ids: torch.Tensor, guesses: int, first: torch.Tensor, width: int) -> torch.Tensor:
        """Do what `fill` does after a text whose length, (1,), only the device knows, within `width` slots.

        `ids` are the root and the mask tokens. All inputs are on the device, so the work can be recorded.
        """
        drafter, rows, data = self._drafter, len(ids), self._cache.data
        every, block = torch.arange(width, device=ids.device), torch.arange(rows, device=ids.device)
        places = block + first
        turn = self._turned(places)

        def mix(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            data[layer].index_copy_(1, places, torch.stack((key, value)))
            keys, values = data[layer][:, :width]
            last = places if drafter.config.causal[layer] else places[-1:].expand(rows)
            seen = every <= last[:, None]
            return attend(query[None], keys[None], values[None], seen[None], drafter.kernel)[0]

        return drafter.block.forward(drafter.embed(ids), turn, mix)[rows - guesses :]

    def _turned(self, places: torch.Tensor) -> RopeTables:
        return RopeTables(*(table.index_select(0, places) for table in self._tables))


def _native(config: DFlashConfig, weights: NamedWeights) -> NativeLayers | None:
    """Make the layers and their final norm in compiled code; None if that cannot run them."""
    shape = config.shape
    if any(config.causal) or shape.rotary < shape.head_dim:  # the keys of the text are not in the order of `halves`
        return None
    layers = [read_layer(shape, weights.__getitem__, f"layers.{layer}.") for layer in range(shape.layers)]
    return NativeLayers(shape, layers, weights["norm.weight"]) if suits(shape, layers) else None
