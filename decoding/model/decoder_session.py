"""A text under a decoder: passes over trees after it, captured if possible, and in two parts for early exits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .cached_session import CachedSession, requested
from .captured import Captured, Judged, PassJudge, PassRows, PassSpec, StepBuffer, StoredText
from .chain_pass import ChainPass
from .graphs import Outputs
from .pointwise import total
from .replays import Outbox, Replays
from .session import Reading

if TYPE_CHECKING:
    from .decoder import Decoder
    from .forward_inputs import ForwardInputs
    from .native_layers import NativeInputs
    from .queued_tree import Parents
    from .upload import Tokens


class DecoderSession(CachedSession):
    """One text under a decoder."""

    def __init__(self, model: Decoder, capacity: int, largest_step: int) -> None:
        super().__init__(model.cache(capacity, largest_step))
        self.seam = model.rope.seam
        self._model = model
        self.replays, self.outbox = Replays(model.recorder), Outbox()  # of drafts after the text
        self._captured = Captured(model.buffered, model.recorder, self.cache, model.cut) if model.recorder else None
        self.reset(0)

    @property
    def judges(self) -> bool:
        """Return True if passes are captured."""
        return self._captured is not None

    @torch.inference_mode()
    def read(
        self,
        tokens: Tokens,
        parents: Parents,
        skip: int = 0,
        only: Sequence[int] | None = None,
        judge: PassJudge | None = None,
    ) -> Reading:
        """Feed a tree whose root follows the stored tokens; answer for the requested rows."""
        model, layers = self._model, self._model.shape.layers
        if skip < len(parents) or model.step_rows:
            step = PassRows(tokens, parents, self.length, judge=judge)
            if outputs := self._replayed(PassSpec(0, layers, self._tapped), step):
                reading = self._noted(outputs)
                if reading.judged is not None:
                    return reading
                return Reading(requested(reading.logits, skip, only), requested(reading.hidden, skip, only))
        x, inputs = self.prepare(tokens, parents)
        hidden = model.final(requested(self.run(x, inputs, 0, layers), skip, only))
        return Reading(model.head(hidden), hidden)

    @torch.inference_mode()
    def enter(
        self, tokens: Tokens, layer: int, ahead: int = 0, parents: tuple[int, ...] | None = None
    ) -> torch.Tensor:  # (n, H)
        """Run a chain, or a tree, `ahead` rows after the stored tokens through the layers before `layer`."""
        parents = parents or tuple(range(-1, len(tokens) - 1))
        outputs = self._replayed(PassSpec(0, layer, answers=False), PassRows(tokens, parents, self.length + ahead))
        if outputs and not isinstance(outputs, Judged):
            return outputs[0]
        x, inputs = self.prepare(tokens, parents, ahead)
        return self._model.forward(x, inputs, 0, layer)

    @torch.inference_mode()
    def resume(
        self, tokens: Tokens, parents: tuple[int, ...], layer: int, hidden: torch.Tensor, judge: PassJudge | None = None
    ) -> Reading:
        """Continue from `layer` with the hidden states of a tree that has entered it; answer for every row."""
        model, layers = self._model, self._model.shape.layers
        spec = PassSpec(layer, layers, tuple(tap for tap in self._tapped if tap >= layer))
        if outputs := self._replayed(spec, PassRows(tokens, parents, self.length, hidden, judge)):
            return self._noted(outputs)
        hidden = model.final(self.run(hidden, self.prepare(tokens, parents)[1], layer, layers))
        return Reading(model.head(hidden), hidden)

    def run(self, x: Tokens, inputs: ForwardInputs | NativeInputs, start: int, stop: int) -> torch.Tensor:
        """Run the layers from `start` to `stop`, and keep the states entering the tapped ones."""
        taps = [layer for layer in self._tapped if start <= layer <= stop]
        states, x, delta = self._model.tapped(x, inputs, start, stop, taps)
        self._note(states)
        return total(x, delta)

    def chain(self, rows: int) -> ChainPass | None:
        """Return passes over `rows` rows after the stored tokens, to be recorded; None if they cannot be."""
        model = self._model
        parents = tuple(range(-1, rows - 1))
        if self._captured is None or model.step_rows or not model.splits(self.cache, self.length, parents):
            return None
        return ChainPass(model.buffered, self._text(self.length), rows)

    def _text(self, first: int) -> StoredText:
        return StoredText(self.cache, self._tables, self._model.cut(first))

    def _noted(self, outputs: Outputs | Judged) -> Reading:
        """Turn the outputs of a captured pass into a reading."""
        if isinstance(outputs, Judged):
            self._note(outputs.states)
            nothing = outputs.flat[:0].view(0, 0)
            return Reading(nothing, nothing, judged=outputs)
        *states, hidden, logits = outputs
        self._note(states)
        return Reading(logits, hidden)

    def _replayed(self, spec: PassSpec, step: PassRows) -> Outputs | Judged | None:
        """Replay a captured pass, or run it with padded rows; None if the pass must run as usual."""
        rows, nodes = self._model.step_rows, len(step.parents)
        if self._captured is None and rows is None:
            return None
        if not self._model.splits(self.cache, step.first, step.parents):
            return None
        self.cache.check(step.first - self.length + nodes)
        if self._captured is not None and (outputs := self._captured.replay(spec, step, self._tables, rows)):
            return outputs
        return self._filled_up(spec, step, rows) if rows is not None and nodes <= rows else None

    def _filled_up(self, spec: PassSpec, step: PassRows, rows: int) -> Outputs:
        """Run a pass padded to `rows` rows, without a graph."""
        model, nodes, hidden = self._model, len(step.parents), step.hidden
        buffer = StepBuffer(rows, model.device)
        buffer.fill(step)
        buffer.take(step)
        if hidden is not None:
            hidden = torch.cat((hidden, hidden.new_zeros(rows - nodes, hidden.shape[1])))
        outputs = model.buffered(buffer, hidden, self._text(step.first), spec)
        return tuple(output[:nodes] for output in outputs)

    @torch.inference_mode()
    def prepare(self, tokens: Tokens, parents: Parents, ahead: int = 0) -> tuple[Tokens, ForwardInputs | NativeInputs]:
        """Return ids and inputs for `Decoder.forward`; raise ModelError, before writing, if rows do not fit."""
        self.cache.check(ahead + len(tokens))
        inputs = self._model.inputs(tokens, parents, self.cache, self._tables, ahead)
        return inputs.ids, inputs

    def keep(self, length: int, prompt_length: int) -> bool:
        """Start a text with the first `length` stored tokens; False if it would rotate them differently."""
        return self._model.rope.rotated_as(prompt_length) == self._rotated_as and super().keep(length, prompt_length)

    @torch.inference_mode()
    def reset(self, prompt_length: int) -> None:
        """Start a new text."""
        super().reset(prompt_length)
        self._rotated_as = self._model.rope.rotated_as(prompt_length)
        self._tables = self._model.rope.tables(prompt_length, self.capacity + self.largest_step)
