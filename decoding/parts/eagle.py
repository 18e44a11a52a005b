"""EAGLE-3's drafter: one layer that reads the target's features and then drafts from its own outputs.

Row i of a text is token i + 1 together with the target's feature of token i, which `fuse` makes of the states of the
tapped layers. The layer's output is the feature of the next row where the target has not read that far; a norm and a
narrowed output layer make next-token logits of it. The arithmetic is written once: `Block` runs it over whole rows,
with gradients, for training; a session runs it along a text and over trees, in compiled code where there is any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from ..model.cache import Cache
from ..model.captured import filled
from ..model.linear import linear
from ..model.native_layers import NativeInputs, NativeLayers, suits
from ..model.queued_tree import Parents, QueuedTree, closure_on, depths_on, on_host
from ..model.rope import Rope, RopeTables
from ..model.transformers_model import AnyModel
from ..model.upload import on_device
from ..model.weights import read_layer
from .eagle_config import EagleConfig
from .feature_part import FeaturePart, FeatureSession
from .layer_math import FeatureLayers, MakeProduct, attend
from .part_files import NamedWeights

if TYPE_CHECKING:
    from ..model.graphs import Outputs
    from ..model.upload import Tokens

MixQkv = Callable[[torch.Tensor], torch.Tensor]  # (..., T, (heads + 2 kv_heads) * D) -> (..., T, heads * D)

_AT = "layers.0."


class Block(FeatureLayers):
    """The layer, between its two inputs and its two outputs."""

    def __init__(self, config: EagleConfig, weights: NamedWeights, product: MakeProduct) -> None:
        super().__init__(config.shape, weights, product)
        self._config = config

    def fuse(self, states: torch.Tensor) -> torch.Tensor:  # (..., taps * H of the target) -> (..., H)
        """Fuse the tapped states of a token into its feature."""
        if self._config.norm_before_fc:
            states = self._norm(states, "input_norm")
        if self._config.fc_norm:
            parts = torch.split(states, self._config.target_hidden, -1)
            states = torch.cat([self._norm(part, f"fc_norm.{tap}") for tap, part in enumerate(parts)], -1)
        return self._fc(states)

    def forward(self, embedded: torch.Tensor, feature: torch.Tensor, mix: MixQkv) -> torch.Tensor:
        """Return the layer's output over rows, (..., T, H) like its inputs."""
        [products] = self._layers
        beside, normed = self._norm(embedded, f"{_AT}input_layernorm"), self._norm(feature, f"{_AT}hidden_norm")
        x = normed if self._config.norm_before_residual else feature
        return self._feed_forward(x + products["out"](mix(products["qkv"](torch.cat((beside, normed), -1)))))

    def leave(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # (..., H)
        """Return the output layer's input, from the layer's output `x`, and the next feature."""
        normed = self._norm(x, "norm")
        return normed, normed if self._config.norm_output else x


class Eagle(FeaturePart):
    """A drafter and its target."""

    def __init__(
        self,
        config: EagleConfig,
        taps: tuple[int, ...],
        weights: NamedWeights,
        model: AnyModel,
        about: str = "in memory",
        rope: Rope | None = None,  # the configuration's
    ) -> None:
        super().__init__(taps, weights, config.shape.head_dim, model, about)
        self.config = config
        with torch.inference_mode():
            self.block = Block(config, self._weights, linear)
            self.native = _native(config, self._weights)
        beside, feature = (
            self._weights[f"{_AT}{name}.weight"].contiguous() for name in ("input_layernorm", "hidden_norm")
        )
        self.norms = feature if config.norm_before_residual else None, beside  # for compiled code
        self.rope = rope or config.rope(self.device, self.dtype)

    def open(self, capacity: int, largest_step: int) -> EagleSession:
        """Open a session for texts of up to `capacity` tokens, and trees of up to `largest_step` after them."""
        return EagleSession(self, capacity, largest_step)


class EagleSession(FeatureSession):
    """One text under a drafter: the keys and values of `length` rows, and of a tree of guesses after them."""

    def __init__(self, eagle: Eagle, capacity: int, largest_step: int) -> None:
        shape, window = eagle.config.shape, eagle.config.window
        sizes = (1, shape.kv_heads, shape.head_dim, capacity, largest_step)
        super().__init__(eagle, Cache(*sizes, window or None, eagle.device, eagle.dtype), window)
        self._eagle = eagle
        # A row's position is that of its token, one after that of its feature.
        self._tables = RopeTables(*(table[1:] for table in eagle.rope.tables(1, capacity + largest_step + 1)))
        self._tree: Parents = ()  # of the rows since `forget`
        size = 1, shape.hidden
        # For recorded work: the last text row's input to `logits`, and the feature of a guess after that row.
        final, feature = (torch.zeros(size, device=eagle.device, dtype=eagle.dtype) for _ in range(2))
        self.last = final, feature

    @torch.inference_mode()
    def read(self, tokens: Sequence[int], states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Read more of the text: each token, and the tapped states (n, taps * H) of the one before it.

        Return every row's input of `logits`, and the feature of a guess after it.
        """
        self.forget()
        rows = self.grow(tokens, self._eagle.block.fuse(states), range(-1, len(tokens) - 1))
        self._cache.commit(range(len(tokens)))
        self.forget()
        return rows

    @torch.inference_mode()
    def follow(self, tokens: Sequence[int], states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Read more of the text, and return the answer for the last row only, in `last`."""
        self.forget()
        count, rows, device = len(tokens), filled(len(tokens)), self._eagle.device
        if width := self.width(rows) if rows else 0:
            numbers = self.length, count - 1, *tokens, *(0 for _ in range(rows - count))

            def work(numbers: torch.Tensor, states: torch.Tensor) -> Outputs:
                first, place, ids = numbers.long().tensor_split((1, 2))
                chain = QueuedTree.chain(rows, device)
                answers = self.behind(ids, self._eagle.block.fuse(states), chain, first, width)
                for end, each in zip(self.last, answers, strict=True):
                    end.copy_(each.index_select(0, place))
                return ()

            if self.replays.run(("text", rows, width), numbers, [(states, rows)], device, work) is not None:
                self._cache.commit(range(count))
                return self.last
        for end, each in zip(self.last, self.read(tokens, states), strict=True):
            end.copy_(each[-1:])
        return self.last

    def forget(self) -> None:
        """Forget the tree."""
        self._tree = ()

    def rewind(self, length: int) -> None:
        """Forget the tree, and the rows after `length`."""
        self.forget()
        super().rewind(length)

    def features(self, states: torch.Tensor) -> torch.Tensor:  # (n, taps * H) -> (n, H)
        """Fuse tapped states into features."""
        return self._eagle.block.fuse(states)

    @torch.inference_mode()
    def grow(
        self, tokens: Tokens, feature: torch.Tensor, parents: Sequence[int] | torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Read more rows of a tree after the text; a parent is an earlier row of the tree, or -1 for the text.

        If the host does not know the parents, they are rows of earlier calls, and all rows have the same depth.
        """
        eagle, cache = self._eagle, self._cache
        tree = self._tree = _longer(self._tree, parents)
        cache.check(len(tree))
        if eagle.native is not None:
            step = NativeInputs(tokens, on_host(tree), cache, self._tables, eagle.config.shape)
            x = feature.clone(memory_format=torch.contiguous_format)
            final = eagle.native.beside(x, eagle.embed(step.ids), step, eagle.norms)
            return final, final if eagle.config.norm_output else x
        ids, below = on_device(tokens, eagle.device), depths_on(tree, eagle.device)
        turn = RopeTables(*(table.index_select(0, below[-len(ids) :] + cache.length) for table in self._tables))
        x = eagle.block.forward(eagle.embed(ids), feature, lambda qkv: self._attend(qkv, turn, below, tree))
        return eagle.block.leave(x)

    def behind(
        self, ids: torch.Tensor, feature: torch.Tensor, tree: QueuedTree, first: torch.Tensor, width: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Read the last rows of a tree after a text whose length, (1,), only the device knows.

        Text and tree are within `width` slots. All inputs are on the device, so the work can be recorded.
        """
        eagle, rows, size, data = self._eagle, len(ids), len(tree), self._cache.data[0]
        turn = RopeTables(*(table.index_select(0, tree.depths[-rows:] + first) for table in self._tables))
        places = torch.arange(width, device=ids.device)
        slots, nodes = places[size - rows : size] + first, places - first
        ancestors = tree.seen[-rows:].index_select(1, nodes.clamp(0, size - 1)) & (nodes >= 0) & (nodes < size)
        seen = ancestors | (nodes < 0)

        def mixed(qkv: torch.Tensor) -> torch.Tensor:
            query, key, value = eagle.block.split(qkv, turn)
            data.index_copy_(1, slots, torch.stack((key, value)))
            keys, values = data[:, :width]
            return attend(query[None], keys[None], values[None], seen[None], eagle.kernel)[0]

        return eagle.block.leave(eagle.block.forward(eagle.embed(ids), feature, mixed))

    def _attend(self, qkv: torch.Tensor, turn: RopeTables, below: torch.Tensor, tree: Parents) -> torch.Tensor:
        """Store the rows' keys and values, and attend to the text and each row's ancestors."""
        cache, window = self._cache, self._eagle.config.window
        query, key, value = self._eagle.block.split(qkv, turn)
        rows, stop = len(query), cache.length + len(tree)
        cache.data[0][:, cache.slots_of(stop - rows, stop)] = torch.stack((key, value))  # (2, slots, kv_heads, D)
        start = max(0, cache.length - window + 1) if window else 0
        keys, values = cache.data[0][:, cache.slots_of(start, stop)]  # (P, kv_heads, D) each
        ancestors = closure_on(tree, query.device)[-rows:]
        seen = torch.cat((ancestors.new_ones(rows, cache.length - start), ancestors), 1)
        if window:
            # Positions relative to the tree's first level.
            places = torch.cat((torch.arange(start - cache.length, 0, device=query.device), below))
            seen &= places > below[-rows:, None] - window
        return attend(query[None], keys[None], values[None], seen[None], self._eagle.kernel)[0]


def _longer(tree: Parents, parents: Sequence[int] | torch.Tensor) -> Parents:
    """Append rows to a tree."""
    if not isinstance(parents, torch.Tensor):
        assert isinstance(tree, tuple)
        return *tree, *parents
    if isinstance(tree, tuple):
        assert not tree, "either the host or the device knows all rows of a tree"
        tree = QueuedTree.nothing(parents.device)
    return tree.grown(parents)


def _native(config: EagleConfig, weights: NamedWeights) -> NativeLayers | None:
    """Make the layer and its final norm in compiled code; None if that cannot run them."""

    def get(name: str) -> torch.Tensor:
        # The compiled layer norms the feature; the embedding is normed separately.
        return weights[_AT + ("hidden_norm.weight" if name == "input_layernorm.weight" else name)]

    layer = read_layer(config.shape, get, "")
    if not suits(config.shape, (layer,)):
        return None
    return NativeLayers(config.shape, (layer,), weights["norm.weight"], normed=config.norm_before_residual)
