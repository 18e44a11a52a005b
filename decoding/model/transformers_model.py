"""Any causal language model of transformers, run through its own modules with our cache and masks.

Our decoder runs the families of `config.FAMILIES`, at a lower cost per step. All others run here: modules, weights and
numbers are those of transformers; only attention's cache and masks are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

import torch

from ..errors import ModelError
from ..types import ModelCard
from .cache import Cache
from .cached_session import CachedSession, requested
from .session import Reading
from .split import AnyDecoder
from .transformers_attention import TREE, register
from .transformers_hooks import mean_experts, note_experts, note_layers, note_output
from .transformers_pass import ModulePass, passing
from .transformers_quantised import held_bytes, stored_bytes
from .upload import on_device

if TYPE_CHECKING:
    from .queued_tree import Parents
    from .upload import Tokens

_NO_TAPS = "layers that can be listened to, and those of this model were not found: use another method"
_NO_EXIT = "layers that can be run in two parts, which models in transformers' own modules have not: use another method"

_CONTEXTS = ("max_position_embeddings", "max_sequence_length", "max_seq_len", "seq_length")


@dataclass(frozen=True, slots=True)
class Widths:
    """The sizes that a model's parts are checked against."""

    hidden: int
    vocabulary: int
    layers: int


class TransformersModel:
    """A wrapped transformers model: its attention uses our cache, and its hooks record states."""

    attention = "transformers' own modules, with trees behind a cache of ours"
    step_rows: int | None = None

    def __init__(self, model: Any, name: str, digest: str, precision: str, parameters: int | None = None) -> None:
        """Raise ModelError if its attention cannot read trees.

        `digest`: the hash of its configuration and weights. `parameters`: their number, for packed weights, which
        cannot be counted.
        """
        register()
        family, self.precision = model.config.model_type, precision
        self._model = model.eval().requires_grad_(False)
        self._inputs, self._outputs = model.get_input_embeddings(), model.get_output_embeddings()
        if self._inputs is None or self._outputs is None:
            raise ModelError(f"models of type {family!r} have embeddings that cannot be found, so they cannot be run")
        self.device, self.dtype = self._inputs.weight.device, model.dtype
        self.devices: tuple[torch.device, ...] = (self.device,)
        model.set_attn_implementation(TREE)
        self._slices = "logits_to_keep" in signature(model.forward).parameters
        note_output(self._outputs)
        self._experts = note_experts(model)
        self._last = read_context(model.config) - 1
        layers = note_layers(model, getattr(model.config.get_text_config(decoder=True), "num_hidden_layers", 0))
        first = self._probe(family, (0, layers))
        self.shape = Widths(first.hidden.shape[1], first.logits.shape[1], layers)
        self.card = self._card(name, family, digest, parameters)

    def _probe(self, family: str, taps: tuple[int, int]) -> Reading:
        """Read two tokens to learn the sizes and the window of every layer's attention."""
        seen = ModulePass(None, (-1, 0), None, self.device, taps)
        reading = self.forward(torch.zeros(2, dtype=torch.long, device=self.device), seen, 0)
        if not seen.sizes:
            raise ModelError(
                f"models of type {family!r} compute attention in a way of their own, so they cannot be run"
            )
        self._sizes, windows = seen.sizes, seen.windows
        # A layer whose mask has no window sees the whole text, and so does one that needs no mask.
        self.window = min((window for window in windows if window is not None), default=None)
        self.rolling = None if None in windows or not windows else max(window or 0 for window in windows)
        shapes = {tap: states.shape for tap, states in seen.states.items()}
        no_taps = {} if shapes == dict.fromkeys(taps, reading.hidden.shape) else {"features": _NO_TAPS}
        self.lacks: Mapping[str, str] = {"early_exit": _NO_EXIT} | no_taps
        return reading

    def _card(self, name: str, family: str, digest: str, parameters: int | None) -> ModelCard:
        size, tied = held_bytes(self._model), self._outputs.weight is self._inputs.weight
        read = size if tied else size - stored_bytes(self._inputs.weight)
        heads, width = self._slot
        return ModelCard(
            name,
            family,
            digest,
            parameters or sum(weight.numel() for weight in self._model.parameters()),
            self.shape.vocabulary,
            self._last + 1,
            weight_bytes=size,
            # Unknown if it depends on the tokens (experts) or on the text's length (windows in some layers only).
            pass_bytes=read if self.window == self.rolling and self._experts is None else None,
            token_bytes=2 * len(self._sizes) * heads * width * self.dtype.itemsize,
            experts=self._experts,
        )

    def open(self, capacity: int, largest_step: int) -> TransformersSession:
        """Open a session for texts of up to `capacity` tokens."""
        return TransformersSession(self, capacity, largest_step)

    @property
    def _slot(self) -> tuple[int, int]:
        """Return heads and dimensions of a slot, the most of any layer: others leave the rest of it empty."""
        return max(heads for heads, *_ in self._sizes), max(max(key, value) for _, key, value in self._sizes)

    def cache(self, capacity: int, largest_step: int) -> Cache:
        """Allocate the cache of a text of up to `capacity` tokens."""
        sizes = (len(self._sizes), *self._slot, capacity, largest_step)
        return Cache(*sizes, self.rolling, self.device, self.dtype)

    @torch.inference_mode()
    def forward(self, ids: torch.Tensor, step: ModulePass, skip: int) -> Reading:
        """Run one pass over a tree; answer for rows `skip` and later."""
        rows = len(ids) - skip
        keep = {"logits_to_keep": max(1, rows)} if self._slices else {}
        positions = step.positions.clamp(max=self._last)  # a guess after the last position is never emitted
        with passing(step):
            logits = self._model(
                input_ids=ids[None],
                attention_mask=ids.new_ones(1, len(ids)),  # nothing is padding, and nothing is packed
                position_ids=positions[None],
                use_cache=False,
                **keep,
            ).logits[0]
        kept = slice(len(logits) - rows, None)
        return Reading(logits[kept], step.hidden[kept], mean_experts(step.experts))

    def head(self, x: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R, V)
        """Apply the output layer, without some models' scaling of logits, which keeps their order."""
        logits: torch.Tensor = self._outputs(x)
        return logits

    def embed(self, ids: Tokens) -> torch.Tensor:  # T ids -> (T, H)
        """Look the tokens' input embeddings up."""
        embedded: torch.Tensor = self._inputs(on_device(ids, self.device))
        return embedded

    def embeddings(self) -> tuple[torch.Tensor, torch.Tensor]:  # (V, H), (V, H)
        """Return the input embeddings, and those of the output layer."""
        return self._inputs.weight, self._outputs.weight


AnyModel = AnyDecoder | TransformersModel


def read_context(config: Any) -> int:
    """Return the most tokens of a text: as far as rotary embeddings do not depend on its length."""
    text = config.get_text_config(decoder=True)
    context = next((size for name in _CONTEXTS if type(size := getattr(text, name, None)) is int and size > 0), None)
    if context is None:
        raise ModelError("config.json names no max_position_embeddings: add the tokens that a text may have")
    ropes = getattr(text, "rope_parameters", None) or {}
    for rope in (ropes, *(part for part in ropes.values() if isinstance(part, dict))):  # one for each kind of layers
        if rope.get("rope_type") in ("dynamic", "longrope"):
            unscaled = rope.get("original_max_position_embeddings", context)
            context = min(context, unscaled) if type(unscaled) is int and unscaled > 0 else context
    return context


class TransformersSession(CachedSession):
    """One text under a transformers model."""

    def __init__(self, model: TransformersModel, capacity: int, largest_step: int) -> None:
        super().__init__(model.cache(capacity, largest_step))
        self._model = model

    def read(self, tokens: Tokens, parents: Parents, skip: int = 0, only: Sequence[int] | None = None) -> Reading:
        """Feed a tree whose root follows the stored tokens; answer for the requested rows."""
        self.cache.check(len(parents))
        model = self._model
        step = ModulePass(self.cache, parents, model.rolling, model.device, self._tapped)
        reading = model.forward(on_device(tokens, model.device), step, skip if only is None else 0)
        if only is not None:
            logits, hidden = requested(reading.logits, 0, only), requested(reading.hidden, 0, only)
            reading = replace(reading, logits=logits, hidden=hidden)
        self._note([step.states[layer] for layer in self._tapped])
        return reading
