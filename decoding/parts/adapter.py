"""Kangaroo's adapter: guesses the hidden states after the last layer from those after a shallow one.

One layer of attention between two norms, with its own keys and values. The arithmetic is written once:
`forward_rows` runs it over whole rows, with gradients, for training; a session runs it along a text, for drafting.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import linear as multiply
from torch.nn.functional import silu

from ..model.attention import recorded_width
from ..model.cache import Cache
from ..model.decoder import Decoder
from ..model.draft_vocabulary import DraftVocabulary
from ..model.graphs import Recorder
from ..model.kernels import by_torch, choose
from ..model.linear import Linear, linear
from ..model.replays import Replays
from ..model.rope import RopeTables
from ..model.split import AnyDecoder
from ..model.upload import upload
from ..tree import closure, depths, is_chain
from .adapter_config import ARCHITECTURES, AdapterConfig
from .layer_math import PRODUCTS, attend, norm, rotated
from .native_adapter import native_adapter
from .part_files import NamedWeights

Mix = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]  # rotated q, rotated k, v -> attention output

_PRODUCTS = {**PRODUCTS, "linear.0": ("linear.0",), "linear.1": ("linear.1",)}


class _Block:
    """The arithmetic, for any number of leading dimensions; `product` makes a linear layer of a weight."""

    def __init__(self, config: AdapterConfig, weights: NamedWeights, product: Callable[[torch.Tensor], Linear]) -> None:
        self._config = config
        self._scales = {name: weight for name, weight in weights.items() if weight.dim() == 1}
        self._products = {
            name: product(torch.cat([weights[f"{stem}.weight"] for stem in stems]))
            for name, stems in _PRODUCTS.items()
            if f"{stems[0]}.weight" in weights
        }

    def forward(self, x: torch.Tensor, turn: RopeTables, mix: Mix) -> torch.Tensor:  # (..., T, H), normed
        """Run the adapter over `x`."""
        config, products = self._config, self._products
        normed = self._norm(x, "input_layernorm")
        if "qkv" in products:
            qkv = products["qkv"](normed).view(*x.shape[:-1], -1, config.head_dim)
            qk, value = qkv.tensor_split((config.heads + config.kv_heads,), -2)
            qk = rotated(qk, turn).to(value.dtype)  # autocast may have lowered it
            query, key = qk.tensor_split((config.heads,), -2)
            x = x + products["out"](mix(query, key, value))
        if "down" in products:
            gate, up = products["gate_up"](self._norm(x, "post_attention_layernorm")).chunk(2, -1)
            x = x + products["down"](silu(gate) * up)
        for name in [name for name in products if name.startswith("linear")]:
            x = normed = normed + silu(products[name](normed))  # as in Medusa's heads: the paper does not say
        return self._norm(x, "norm")

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return norm(x, self._scales[f"{name}.weight"], self._config.eps)


def rotation(config: AdapterConfig, positions: torch.Tensor, dtype: torch.dtype) -> RopeTables:  # (..., T)
    """Make the rotary tables of `positions`."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=positions.device) / config.head_dim
    angles = positions[..., None, None].float() * (1.0 / config.rope_theta**exponents)
    cos, sin = angles.cos(), angles.sin()
    return RopeTables(torch.cat((cos, cos), -1).to(dtype), torch.cat((-sin, sin), -1).to(dtype))


def visible(queries: torch.Tensor, keys: torch.Tensor, window: int) -> torch.Tensor:  # (T,), (P,) -> (T, P)
    """Return which positions `keys` the positions `queries` attend to; a window of 0 sees the whole text."""
    distance = queries[:, None] - keys
    return (distance >= 0) & (distance < window) if window else distance >= 0


def forward_rows(
    config: AdapterConfig,
    weights: NamedWeights,
    x: torch.Tensor,
    positions: torch.Tensor,
    mask: torch.Tensor,
    turn: RopeTables | None = None,  # instead of the configuration's rotary embedding
) -> torch.Tensor:  # (B, T, H) after the exit layer, (T,) or (B, T), (T, T) or (B, T, T) -> (B, T, H) for the LM head
    """Run the adapter over whole rows under `mask`; gradients flow into `weights` and `x`."""
    block = _Block(config, weights, lambda weight: lambda rows: multiply(rows, weight))
    turn = turn or rotation(config, positions, x.dtype)
    return block.forward(x, turn, lambda q, k, v: attend(q, k, v, mask, by_torch))


class Adapter:
    """An adapter and its model."""

    def __init__(
        self,
        config: AdapterConfig,
        weights: NamedWeights,
        model: AnyDecoder,
        about: str = "in memory",
        vocabulary: DraftVocabulary | None = None,
    ) -> None:
        self.config, self.layer, self.about = config, config.exit_layer, about
        self.device, self.dtype, self._model = model.device, model.dtype, model
        cuda = self.device.type == "cuda"
        self.kernel = choose(self.device, self.dtype, config.head_dim).attend if cuda else by_torch
        with torch.inference_mode():
            copies = {name: w.detach().to(self.device, self.dtype, copy=True) for name, w in weights.items()}
            self.native = native_adapter(config, copies, model.shape)
            self.block = _Block(config, copies, lambda weight: linear(weight, None)) if self.native is None else None
            self.vocabulary, output = vocabulary, copies.get("lm_head.weight")
            if output is not None:
                self._head = linear(output if vocabulary is None else vocabulary.rows(output), None)
            else:
                self._head = model.head if vocabulary is None else vocabulary.head(model.embeddings()[1])

    def logits(self, rows: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R, n)
        """Return next-token logits for these rows, over the draft vocabulary."""
        return self._head(rows)

    @property
    def recorder(self) -> Recorder | None:
        """Return the recorder of the passes of target and drafter."""
        return self._model.recorder if isinstance(self._model, Decoder) else None

    def open(self, capacity: int, largest_step: int) -> AdapterSession:
        """Open a session for texts of up to `capacity` tokens."""
        return AdapterSession(self, capacity, largest_step)


class AdapterSession:
    """One text under an adapter: its keys and values of `length` tokens."""

    def __init__(self, adapter: Adapter, capacity: int, largest_step: int) -> None:
        config, device, dtype = adapter.config, adapter.device, adapter.dtype
        attends = "self_attn" in ARCHITECTURES[config.architecture]
        sizes = (int(attends), config.kv_heads, config.head_dim, capacity, largest_step)
        self.capacity, self.largest_step = capacity, largest_step
        self._adapter, self._cache = adapter, Cache(*sizes, config.window or None, device, dtype)
        self.replays = Replays(adapter.recorder)
        places = torch.arange(capacity + largest_step if attends else 0, device=device)
        self._tables = rotation(config, places, dtype)

    @property
    def length(self) -> int:
        """Return the number of tokens read."""
        return self._cache.length

    @torch.inference_mode()
    def read(self, hidden: torch.Tensor) -> torch.Tensor:  # (n, H) -> (n, H)
        """Read the next tokens' hidden states after the exit layer; return the inputs of `logits`."""
        out = self.look(hidden, tuple(range(-1, len(hidden) - 1)))
        self._cache.commit(range(len(hidden)))
        return out

    @torch.inference_mode()
    def look(self, hidden: torch.Tensor, parents: tuple[int, ...]) -> torch.Tensor:  # (n, H) -> (n, H)
        """Read the states of a tree's tokens after the text, without storing them."""
        self._cache.check(len(hidden))
        if self._adapter.native is not None:
            return self._adapter.native.read(hidden, parents, self._cache, self._tables)
        assert self._adapter.block is not None
        first = self.length
        if is_chain(parents):
            turn = RopeTables(*(table[first : first + len(hidden)] for table in self._tables))
        else:
            places = upload(torch.tensor(depths(parents)) + first, hidden.device)
            turn = RopeTables(*(table[places] if len(table) else table for table in self._tables))
        return self._adapter.block.forward(hidden, turn, lambda q, k, v: self._attend(q, k, v, parents))

    def width(self, rows: int) -> int:
        """Return how many slots recorded work attends to for `rows` after the text; 0 if it cannot be recorded."""
        adapter = self._adapter
        return recorded_width(self._cache, rows, adapter.config.window) if adapter.native is None else 0

    def behind(self, hidden: torch.Tensor, first: torch.Tensor, width: int) -> torch.Tensor:  # (n, H), (1,) -> (n, H)
        """Read the rows of a chain after a text whose length only the device knows, within `width` slots."""
        assert self._adapter.block is not None
        data, places = self._cache.data, torch.arange(width, device=hidden.device)
        slots = places[: len(hidden)] + first
        turn = RopeTables(*(table[slots] if len(table) else table for table in self._tables))

        def mixed(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            data[0].index_copy_(1, slots, torch.stack((key, value)))
            keys, values = data[0][:, None, :width]
            return attend(query[None], keys, values, places <= slots[:, None], self._adapter.kernel)[0]

        return self._adapter.block.forward(hidden, turn, mixed)

    def follow(self, rows: int) -> None:
        """Count `rows` rows that recorded work has read as part of the text."""
        self._cache.commit(range(rows))

    def logits(self, rows: torch.Tensor) -> torch.Tensor:  # (R, H) of an answer -> (R, n)
        """Return next-token logits for these rows, over the draft vocabulary."""
        return self._adapter.logits(rows)

    def rewind(self, length: int) -> None:
        """Forget the tokens after `length`: at most `largest_step` of them, or all."""
        self._cache.rewind(length)

    def _attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, parents: tuple[int, ...]
    ) -> torch.Tensor:
        """Store a tree's keys and values, (n, kv_heads, D) each, after the text, and attend."""
        cache, window = self._cache, self._adapter.config.window
        first, stop = cache.length, cache.length + len(query)
        cache.data[0][:, cache.slots_of(first, stop)] = torch.stack((key, value))  # (2, slots, kv_heads, D)
        start = max(0, first - window + 1) if window else 0
        keys, values = cache.data[0][:, None, cache.slots_of(start, stop)]
        mask = None  # a single row sees all keys
        if len(query) > 1:
            places = torch.arange(start, stop, device=query.device)
            if not is_chain(parents):
                places[first - start :] = upload(torch.tensor(depths(parents)) + first, query.device)
            mask = visible(places[first - start :], places, window)
            if not is_chain(parents):
                mask[:, first - start :] &= upload(torch.from_numpy(closure(parents).copy()), query.device)
        return attend(query[None], keys, values, mask, self._adapter.kernel)[0]
