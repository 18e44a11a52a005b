"""The Llama family's forward pass, written to be read in one sitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import silu

from ..errors import ModelError
from ..types import ModelCard
from .attention import BLOCK, Attention
from .cache import Cache
from .captured import SAME_ROWS, Captured, Outputs, Part, Recorder, StepBuffer, captures, step_rows
from .config import Shape
from .forward_inputs import ForwardInputs
from .kernels import choose, widest
from .native_layers import NativeInputs, NativeLayers, suits
from .norm import norm
from .rope import Rope, Tables
from .session import Reading
from .upload import upload
from .weights import Weights

if TYPE_CHECKING:
    from .session import Tokens


class Decoder:
    """Weights on a device. `load_decoder` and `from_transformers` make one."""

    def __init__(self, shape: Shape, weights: Weights, rope: Rope, card: ModelCard) -> None:
        self.shape, self.card, self.rope = shape, card, rope
        self.device, self.dtype, self.precision = weights.norm.device, weights.norm.dtype, weights.precision.name
        self.devices: tuple[torch.device, ...] = (self.device,)
        self.window, self.rolling = shape.window, shape.rolling
        self._weights = weights
        self._norm = norm(shape.eps, self.device, self.dtype)
        self._native = NativeLayers(shape, weights.layers, weights.norm) if suits(shape, weights.layers) else None
        self.compiled = self._native is not None
        asked = step_rows()
        self.step_rows = None if self.compiled else asked  # compiled rows are independent of each other anyway
        kernels = choose(self.device, self.dtype, shape.head_dim) if self.step_rows is None else widest()
        whole = self.step_rows is not None
        self._attention = Attention(kernels, shape.repeats, self.device, self.dtype, whole)
        self.attention = "compiled attention, in the order of the text" if self.compiled else kernels.name
        if self.step_rows is not None:
            self.attention += f", every pass of {self.step_rows} rows"
        self.recorder: Recorder | None = None
        if captures() and self.device.type == "cuda":
            self.recorder = Recorder(self.device)
            self.attention += ", steps captured in CUDA graphs"

    @classmethod
    def from_transformers(cls, model: Any, dtype: str | torch.dtype | None = None) -> Decoder:
        """The decoder for a transformers model that is in memory already, on the same device."""
        from .loading import from_transformers

        made = from_transformers(model, dtype)
        assert isinstance(made, cls)
        return made

    def open(self, capacity: int, largest_step: int) -> DecoderSession:
        """A session for texts of up to `capacity` tokens."""
        if self.step_rows is not None and self.window is not None and self.window < capacity:
            raise ModelError(
                f"a window of {self.window} tokens hides some of a text of {capacity}, which {SAME_ROWS} cannot do: "
                "leave it out, or ask for fewer tokens"
            )
        return DecoderSession(self, capacity, largest_step)

    def cache(self, capacity: int, largest_step: int) -> Cache:
        """Room for the keys and values of a text of up to `capacity` tokens."""
        shape, spare = self.shape, 0 if self.compiled else self._attention.spare
        sizes = (shape.layers, shape.kv_heads, shape.head_dim, capacity, largest_step)
        return Cache(*sizes, self.rolling, self.device, self.dtype, spare)

    def splits(self, cache: Cache, first: int, parents: tuple[int, ...]) -> bool:
        """Whether no layer's window hides anything from a tree whose root stands at place `first`."""
        return all(self._attention.splits(cache, first, parents, window) for window in set(self.shape.windows))

    def buffered(
        self, buffer: StepBuffer, hidden: torch.Tensor | None, cache: Cache, tables: Tables, cut: int, part: Part
    ) -> Outputs:
        """A pass over a step that stands in a buffer: what enters the tapped layers, what comes out, and the answer."""
        step = ForwardInputs.buffered(buffer, cut, cache, tables, self.shape, self._attention)
        x, states, start = step.ids if hidden is None else hidden, list[torch.Tensor](), part.start
        for layer in part.taps:
            states.append(x := self.forward(x, step, start, layer))
            start = layer
        x = self.forward(x, step, start, part.stop)
        if not part.answers:
            return *states, x
        final = self.final(x)
        return *states, final, self.head(final)

    def inputs(
        self, tokens: Tokens, parents: tuple[int, ...], cache: Cache, tables: Tables, ahead: int = 0
    ) -> ForwardInputs | NativeInputs:
        """A tree behind a cached text, for `forward`; `ahead` rows of a chain stand in between."""
        if self.compiled:
            return NativeInputs(tokens, parents, cache, tables, self.shape, ahead)
        return ForwardInputs(tokens, parents, cache, tables, self.shape, self._attention, ahead)

    def forward(
        self, x: torch.Tensor, step: ForwardInputs | NativeInputs, start: int = 0, stop: int | None = None
    ) -> torch.Tensor:  # (T,) ids or (T, H) -> (T, H)
        """Run the layers from `start` to `stop`; ids are embedded first. Keys and values go into the step's cache."""
        shape, weights = self.shape, self._weights
        heads, size = shape.heads, shape.head_dim
        stop = shape.layers if stop is None else stop
        if x.dim() == 1:
            x = self.embed(x)
        if isinstance(step, NativeInputs):  # the same in compiled code
            assert self._native is not None
            return self._native.forward(x, step, start, stop)
        normal = self._norm
        for index in range(start, stop):
            layer = weights.layers[index]
            qkv = layer.qkv(normal(x) * layer.attention_norm).view(-1, heads + 2 * shape.kv_heads, size)
            if layer.qk_norm is not None:
                qk, value = qkv.tensor_split((heads + shape.kv_heads,), 1)
                qkv = torch.cat((normal(qk.reshape(-1, size)).view_as(qk) * layer.qk_norm, value), 1)
            query = step.store(index, qkv)
            x = x + layer.out(step.spans[index].attend(index, query))
            gate, up = layer.gate_up(normal(x) * layer.mlp_norm).chunk(2, -1)
            x = x + layer.down(silu(gate).mul_(up))
        return x

    def embed(self, ids: torch.Tensor) -> torch.Tensor:  # (T,) -> (T, H)
        """The input embeddings of tokens."""
        return self._weights.embedding.index_select(0, ids)

    def final(self, x: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R, H)
        """The final norm."""
        if self._native is not None:
            return self._native.final(x)
        return self._norm(x) * self._weights.norm

    def head(self, x: torch.Tensor) -> torch.Tensor:  # (R, H) after the final norm -> (R, V)
        """The logits."""
        return self._weights.head(x)

    @torch.inference_mode()
    def embeddings(self) -> tuple[torch.Tensor, torch.Tensor]:  # (V, H), (V, H)
        """The input embeddings, and those of the output layer, which may be laid out for its product alone."""
        unit = torch.eye(self.shape.hidden, device=self.device, dtype=self.dtype)
        return self._weights.embedding, self.head(unit).T


class DecoderSession:
    """One text under a decoder."""

    def __init__(self, model: Decoder, capacity: int, largest_step: int) -> None:
        self.capacity, self.largest_step, self.seam = capacity, largest_step, model.rope.seam
        self._model = model
        self.cache = model.cache(capacity, largest_step)
        self._taps: tuple[int, ...] = ()
        self._tapped: list[torch.Tensor] = []
        self._entering = torch.empty(0, 0)  # what the last reading's rows had in front of the tapped layers
        self._captured = Captured(model.buffered, model.recorder, self.cache) if model.recorder else None
        self.reset(0)

    @property
    def length(self) -> int:
        """Tokens stored."""
        return self.cache.length

    @torch.inference_mode()
    def read(self, tokens: Tokens, parents: tuple[int, ...], skip: int = 0) -> Reading:
        """Feed a tree whose root stands right behind the stored tokens; answer for rows `skip` and later."""
        part = Part(0, self._model.shape.layers, self._taps)
        answers = skip < len(parents)
        if (answers or self._model.step_rows) and (found := self._replayed(part, tokens, parents)):
            *states, hidden, logits = found
            self._note(states)
            return Reading(logits[skip:], hidden[skip:])
        x, step = self.prepare(tokens, parents)
        return self.answer(self.run(x, step, 0, self._model.shape.layers), skip)

    @torch.inference_mode()
    def enter(self, tokens: Tokens, layer: int, ahead: int = 0) -> torch.Tensor:  # (n, H)
        """Run a chain through the layers in front of `layer`; it stands `ahead` rows behind the stored tokens."""
        parents = tuple(range(-1, len(tokens) - 1))
        if found := self._replayed(Part(0, layer, answers=False), tokens, parents, ahead):
            return found[0]
        x, step = self.prepare(tokens, parents, ahead)
        return self._model.forward(x, step, 0, layer)

    @torch.inference_mode()
    def resume(self, tokens: Tokens, parents: tuple[int, ...], layer: int, hidden: torch.Tensor) -> Reading:
        """Go on from `layer` with the hidden states of a tree that has entered it; answer for every row."""
        part = Part(layer, self._model.shape.layers, tuple(tap for tap in self._taps if tap >= layer))
        if found := self._replayed(part, tokens, parents, hidden=hidden):
            *states, final, logits = found
            self._note(states)
            return Reading(logits, final)
        step = self.prepare(tokens, parents)[1]
        return self.answer(self.run(hidden, step, layer, self._model.shape.layers), 0)

    def run(self, x: torch.Tensor, step: ForwardInputs | NativeInputs, start: int, stop: int) -> torch.Tensor:
        """Run the layers from `start` to `stop`, and note what enters the tapped ones."""
        states = list[torch.Tensor]()
        for layer in self._taps:
            if start <= layer <= stop:
                states.append(x := self._model.forward(x, step, start, layer))
                start = layer
        self._note(states)
        return self._model.forward(x, step, start, stop)

    def _note(self, states: list[torch.Tensor]) -> None:
        """Note what entered the tapped layers."""
        if states:
            self._entering = torch.cat(states, 1) if len(states) > 1 else states[0]

    def _replayed(
        self,
        part: Part,
        tokens: Tokens,
        parents: tuple[int, ...],
        ahead: int = 0,
        hidden: torch.Tensor | None = None,
    ) -> Outputs | None:
        """What comes out of a pass that was captured; None where there is none, and nothing is done."""
        first, rows = self.cache.length + ahead, self._model.step_rows
        if (self._captured is None and rows is None) or not self._model.splits(self.cache, first, parents):
            return None
        self.cache.check(ahead + len(parents))
        found = None
        if self._captured is not None:
            found = self._captured.replay(part, tokens, parents, first, hidden, self._tables, rows)
        if found is None and rows is not None and len(parents) <= rows:
            return self._filled_up(part, tokens, parents, first, hidden, rows)
        return found

    def _filled_up(
        self,
        part: Part,
        tokens: Tokens,
        parents: tuple[int, ...],
        first: int,
        hidden: torch.Tensor | None,
        rows: int,
    ) -> Outputs:
        """The same pass without a graph."""
        buffer, nodes = StepBuffer(rows, self._model.device), len(parents)
        buffer.fill(tokens, parents, first)
        if hidden is not None:
            hidden = torch.cat((hidden, hidden.new_zeros(rows - nodes, hidden.shape[1])))
        outputs = self._model.buffered(buffer, hidden, self.cache, self._tables, first - first % BLOCK, part)
        return tuple(output[:nodes] for output in outputs)

    def tap(self, *layers: int) -> None:
        """From now on record the hidden states with which each stored token enters these layers; none: stop."""
        self._taps, self._tapped = layers, []

    def tapped(self) -> torch.Tensor:  # (n, layers * H)
        """The hidden states recorded since the last call, of the last n stored tokens. A reset deletes them."""
        kept, self._tapped = self._tapped, []
        return torch.cat(kept) if kept else self._entering[:0]

    @torch.inference_mode()
    def prepare(
        self, tokens: Tokens, parents: tuple[int, ...], ahead: int = 0
    ) -> tuple[torch.Tensor, ForwardInputs | NativeInputs]:
        """Ids and step for `Decoder.forward`; raises ModelError, with nothing written, where the rows do not fit."""
        self.cache.check(ahead + len(tokens))
        step = self._model.inputs(tokens, parents, self.cache, self._tables, ahead)
        return step.ids, step

    def answer(self, x: torch.Tensor, skip: int) -> Reading:  # (T, H) behind the last layer
        """The reading of rows `skip` and later."""
        model = self._model
        hidden = model.final(x[skip:] if skip else x)
        if skip == len(x):
            return Reading(hidden.new_empty(0, model.shape.vocabulary), hidden)
        return Reading(model.head(hidden), hidden)

    def commit(self, rows: Sequence[int]) -> None:
        """Store the rows of the last reading that form a path from its root; the others are forgotten."""
        self.cache.commit(rows)
        if self._taps:
            taken = upload(torch.tensor(rows, dtype=torch.long), self._model.device)
            self._tapped.append(self._entering.index_select(0, taken))

    def rewind(self, length: int) -> None:
        """Forget stored tokens behind `length`: at most `largest_step` of them."""
        self.cache.rewind(length)

    def keep(self, length: int, prompt_length: int) -> bool:
        """Start a text whose first `length` tokens are those stored, where they are rotated as this text asks for."""
        if self._model.rope.rotated_as(prompt_length) != self._rotated_as or not self.cache.holds(length):
            return False
        self.cache.rewind(length)
        self._tapped.clear()
        return True

    @torch.inference_mode()
    def reset(self, prompt_length: int) -> None:
        """Start a new text."""
        self.cache.reset()
        self._tapped.clear()
        self._rotated_as = self._model.rope.rotated_as(prompt_length)
        self._tables = self._model.rope.tables(prompt_length, self.capacity + self.largest_step)
