"""The Llama family's forward pass, written to be read in one sitting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from ..errors import ModelError
from ..gpu.choice import PRODUCTS, chosen, in_words
from ..tree import is_chain
from ..types import ModelCard
from . import quiet
from .attention import Attention
from .cache import Cache
from .captured import SAME_ROWS, PassSpec, StepBuffer, StoredText, step_rows
from .config import Shape
from .decoder_session import DecoderSession
from .draft_vocabulary import DraftVocabulary
from .forward_inputs import ChainRows, ForwardInputs
from .fused_layers import FEW, FusedLayers
from .graphs import Outputs, Recorder, captures
from .kernels import choose, widest
from .native_layers import NativeInputs, NativeLayers, suits
from .pointwise import pointwise, total
from .queued_tree import Parents, QueuedTree, depths_on, on_host
from .rope import Rope, RopeTables
from .rotation import Where
from .upload import on_device
from .weights import DecoderWeights, Get, read_layer

if TYPE_CHECKING:
    from .upload import Tokens

Inputs = ForwardInputs | NativeInputs


class Decoder:
    """A model on one device, made by `load_model` or `decoder_of`."""

    def __init__(
        self, shape: Shape, weights: DecoderWeights, rope: Rope, card: ModelCard, drafts: DraftVocabulary | None = None
    ) -> None:
        """`drafts`: the tokens that a draft model's logits are over; None: all."""
        self.shape, self.card, self.rope, self.drafts = shape, card, rope, drafts
        self.device, self.dtype, self.precision = weights.norm.device, weights.norm.dtype, weights.precision.name
        self.devices: tuple[torch.device, ...] = (self.device,)
        self.window, self.rolling = shape.window, shape.rolling
        self.lacks: Mapping[str, str] = {}
        self._weights = weights
        self._native = NativeLayers(shape, weights.layers, weights.norm) if suits(shape, weights.layers) else None
        self.compiled = self._native is not None
        rows = step_rows()
        self.step_rows = None if self.compiled else rows  # in compiled code rows are always independent of each other
        whole = self.step_rows is not None
        kernels = widest() if whole else choose(self.device, self.dtype, shape.head_dim)
        names = chosen(self.device, self.dtype)
        self._pointwise = pointwise(shape, self.device, self.dtype, names)
        fusing = {*PRODUCTS, "int8"} if weights.precision.int8 else {*PRODUCTS}
        self._fused = FusedLayers(shape, weights.layers) if fusing <= names else None
        self._attention = Attention(kernels, shape.repeats, self.device, self.dtype, whole, self._pointwise.merge)
        self._kernels = "compiled attention, in the order of the text" if self.compiled else kernels.name
        self._kernels += in_words(self.device, self.dtype)
        if whole:
            self._kernels += f", every pass of {self.step_rows} rows"
        self.recorder = Recorder(self.device) if captures() and self.device.type == "cuda" else None

    @property
    def attention(self) -> str:
        """Name the kernels that run, and say whether their launches are recorded."""
        if self.recorder is None:
            return self._kernels
        if reason := self.recorder.failed:
            return f"{self._kernels}, some steps not captured in CUDA graphs ({' '.join(reason.split())[:80]})"
        return f"{self._kernels}, steps captured in CUDA graphs"

    def rewired(self, windows: tuple[int | None, ...], rope: Mapping[str, Any]) -> Decoder:
        """Return these weights with other windows, one per layer, and other settings of the rotary embedding."""
        shape = replace(self.shape, windows=windows, rope=rope.get("rope_type", "default"))
        return Decoder(shape, self._weights, self.rope.with_parameters(rope), self.card, self.drafts)

    def relayered(self, get: Get, eps: float) -> Decoder:
        """Return this embedding and output layer with other layers, read by name, and another epsilon."""
        shape = replace(self.shape, eps=eps)
        layers = tuple(read_layer(shape, get, f"model.layers.{index}.") for index in range(shape.layers))
        weights = replace(self._weights, layers=layers, norm=get("model.norm.weight"))
        return Decoder(shape, weights, self.rope, self.card, self.drafts)

    def narrowed(self, drafts: DraftVocabulary) -> Decoder:
        """Return these weights with an output layer over some tokens only."""
        weights = replace(self._weights, head=drafts.head(self.embeddings()[1]))
        return Decoder(self.shape, weights, self.rope, self.card, drafts)

    def open(self, capacity: int, largest_step: int) -> DecoderSession:
        """Open a session for texts of up to `capacity` tokens."""
        if self.step_rows is not None and self.window is not None and self.window < capacity:
            raise ModelError(
                f"a window of {self.window} tokens hides some of a text of {capacity}, which {SAME_ROWS} cannot do: "
                "leave it out, or ask for fewer tokens"
            )
        return DecoderSession(self, capacity, largest_step)

    def cache(self, capacity: int, largest_step: int) -> Cache:
        """Allocate the cache of a text of up to `capacity` tokens."""
        shape, spare = self.shape, 0 if self.compiled else self._attention.spare
        sizes = (shape.layers, shape.kv_heads, shape.head_dim, capacity, largest_step)
        return Cache(*sizes, self.rolling, self.device, self.dtype, spare)

    def splits(self, cache: Cache, first: int, parents: Parents) -> bool:
        """Return True if no layer's window hides anything from a tree whose root is at position `first`."""
        return all(self._attention.splits(cache, first, parents, window) for window in set(self.shape.windows))

    def cut(self, first: int) -> int | None:
        """Return the prefix that a pass after `first` tokens is recorded for; None: it serves every text."""
        return self._attention.cut(first)

    def inputs(self, tokens: Tokens, parents: Parents, cache: Cache, tables: RopeTables, ahead: int = 0) -> Inputs:
        """Prepare a tree after a cached text, with `ahead` rows of a chain in between, for `forward`."""
        if self.compiled:
            return NativeInputs(tokens, on_host(parents), cache, tables, self.shape, ahead)
        first, rows, windows = cache.length + ahead, len(parents), self.shape.windows
        chain = not isinstance(parents, QueuedTree) and is_chain(parents)
        positions: Where = slice(first, first + rows) if chain else depths_on(parents, self.device) + first
        store = self._pointwise.rotation(tables, positions, cache, cache.slots_of(first, first + rows))
        spans = {window: self._attention.span(cache, first, parents, window) for window in set(windows)}
        return ForwardInputs(on_device(tokens, self.device), store, [spans[window] for window in windows])

    def buffered_inputs(self, buffer: StepBuffer | ChainRows, text: StoredText) -> ForwardInputs:
        """Prepare a pass to record: all inputs that differ between steps are in a buffer."""
        cache, tables, cut = text
        store = self._pointwise.rotation(tables, buffer.positions, cache, buffer.slots)
        span = self._attention.buffered(cache, cut, buffer.first, buffer.seen, buffer.ahead)
        return ForwardInputs(buffer.ids, store, [span] * self.shape.layers)

    def buffered(
        self, buffer: StepBuffer | ChainRows, hidden: torch.Tensor | None, text: StoredText, spec: PassSpec
    ) -> Outputs:
        """Run a pass over a buffer's rows; return the states entering tapped layers, the final states, and logits."""
        inputs = self.buffered_inputs(buffer, text)
        x = inputs.ids if hidden is None else hidden
        states, x, delta = self.tapped(x, inputs, spec.start, spec.stop, spec.taps)
        if not spec.answers:
            return *states, total(x, delta)
        final = self.final(x, delta)
        return *states, final, self.head(final)

    def forward(
        self, x: Tokens, inputs: Inputs, start: int = 0, stop: int | None = None
    ) -> torch.Tensor:  # T ids or (T, H) -> (T, H)
        """Run the layers from `start` to `stop`, after embedding ids; write keys and values to the inputs' cache."""
        return total(*self._run(x, inputs, start, self.shape.layers if stop is None else stop))

    def _run(self, x: Tokens, inputs: Inputs, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Run the layers; return the residual and the last MLP's output apart, as a norm adds them in its kernel."""
        if isinstance(inputs, NativeInputs):
            assert self._native is not None
            return self._native.forward(self._fresh(x), inputs, start, stop), None
        if not isinstance(x, torch.Tensor) or x.dim() == 1:
            x = self.embed(x)
        if self._fused is not None and len(x) <= FEW:
            return self._fused.forward(x, inputs, start, stop), None
        shape, norm, swiglu = self.shape, self._pointwise.norm, self._pointwise.swiglu
        delta: torch.Tensor | None = None
        for index in range(start, stop):
            layer = self._weights.layers[index]
            x, normed = norm(x, delta, layer.attention_norm)
            qkv = layer.qkv(normed).view(-1, shape.heads + 2 * shape.kv_heads, shape.head_dim)
            query = inputs.store(index, qkv, layer.qk_norm)
            attended = inputs.spans[index].attend(index, query)
            x, normed = norm(x, layer.out(attended), layer.mlp_norm)
            delta = layer.down(swiglu(layer.gate_up(normed)))
        return x, delta

    def tapped(
        self, x: Tokens, inputs: Inputs, start: int, stop: int, taps: Sequence[int]
    ) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor | None]:
        """Run the layers; return the states entering `taps`, in one tensor or one per layer, and `_run`'s outputs."""
        if taps and isinstance(inputs, NativeInputs):
            assert self._native is not None
            states, x = self._native.tapped(self._fresh(x), inputs, start, stop, taps)
            return [states], x, None
        by_layer = list[torch.Tensor]()
        for layer in taps:
            by_layer.append(x := self.forward(x, inputs, start, layer))
            start = layer
        return by_layer, *self._run(x, inputs, start, stop)

    def _fresh(self, x: Tokens) -> torch.Tensor:  # T ids or (T, H) -> (T, H)
        """Return rows that compiled code may overwrite: new embeddings, or a copy."""
        if not isinstance(x, torch.Tensor) or x.dim() == 1:
            return self.embed(x)
        return x.clone(memory_format=torch.contiguous_format)

    def embed(self, ids: Tokens) -> torch.Tensor:  # T ids -> (T, H)
        """Look the tokens' input embeddings up."""
        return quiet.rows(self._weights.embedding, ids)

    def final(self, x: torch.Tensor, delta: torch.Tensor | None = None) -> torch.Tensor:  # (R, H) -> (R, H)
        """Apply the final norm to `x + delta`."""
        if self._native is not None:
            return self._native.final(total(x, delta))
        return self._pointwise.norm(x, delta, self._weights.norm)[1]

    def head(self, x: torch.Tensor) -> torch.Tensor:  # (R, H) after the final norm -> (R, V)
        """Compute the logits."""
        return self._weights.head(x) if len(x) else x.new_empty(0, self.shape.vocabulary)

    @torch.inference_mode()
    def embeddings(self) -> tuple[torch.Tensor, torch.Tensor]:  # (V, H), (V, H)
        """Return the input embeddings, and those of the output layer, computed since its layout may be private."""
        unit = torch.eye(self.shape.hidden, device=self.device, dtype=self.dtype)
        return self._weights.embedding, self.head(unit).T
