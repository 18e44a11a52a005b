"""One text under a decoder: what of it is stored, how a step is read behind it, and what the tapped layers met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .asked_rows import asked
from .captured import Captured, Judged, Outputs, PassJudge, PassSpec, StepBuffer
from .chain_pass import ChainPass
from .pointwise import total
from .replays import Outbox, Replays
from .session import Reading
from .taps import Taps

if TYPE_CHECKING:
    from .decoder import Decoder
    from .forward_inputs import ForwardInputs
    from .native_layers import NativeInputs
    from .queued_tree import Parents
    from .upload import Tokens


class DecoderSession:
    """One text under a decoder."""

    def __init__(self, model: Decoder, capacity: int, largest_step: int) -> None:
        self.capacity, self.largest_step, self.seam = capacity, largest_step, model.rope.seam
        self._model = model
        self.cache = model.cache(capacity, largest_step)
        self._taps = Taps()
        self.replays, self.outbox = Replays(model.recorder), Outbox()  # of what is drafted behind the text
        self._captured = Captured(model.buffered, model.recorder, self.cache, model.cut) if model.recorder else None
        self.reset(0)

    @property
    def length(self) -> int:
        """Tokens stored."""
        return self.cache.length

    @property
    def judges(self) -> bool:
        """Whether passes are captured."""
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
        """Feed a tree whose root stands right behind the stored tokens; answer for the rows that are asked for."""
        part = PassSpec(0, self._model.shape.layers, self._taps.layers)
        answers = skip < len(parents)
        if (answers or self._model.step_rows) and (found := self._replayed(part, tokens, parents, judge=judge)):
            reading = self._noted(found)
            if reading.judged is not None:
                return reading
            return Reading(asked(reading.logits, skip, only), asked(reading.hidden, skip, only))
        x, step = self.prepare(tokens, parents)
        return self.answer(self.run(x, step, 0, self._model.shape.layers), skip, only)

    @torch.inference_mode()
    def enter(
        self, tokens: Tokens, layer: int, ahead: int = 0, parents: tuple[int, ...] | None = None
    ) -> torch.Tensor:  # (n, H)
        """Run a chain, or a tree, `ahead` rows behind the stored tokens through the layers in front of `layer`."""
        parents = parents or tuple(range(-1, len(tokens) - 1))
        found = self._replayed(PassSpec(0, layer, answers=False), tokens, parents, ahead)
        if found and not isinstance(found, Judged):
            return found[0]
        x, step = self.prepare(tokens, parents, ahead)
        return self._model.forward(x, step, 0, layer)

    @torch.inference_mode()
    def resume(
        self, tokens: Tokens, parents: tuple[int, ...], layer: int, hidden: torch.Tensor, judge: PassJudge | None = None
    ) -> Reading:
        """Go on from `layer` with the hidden states of a tree that has entered it; answer for every row."""
        part = PassSpec(layer, self._model.shape.layers, tuple(tap for tap in self._taps.layers if tap >= layer))
        if found := self._replayed(part, tokens, parents, hidden=hidden, judge=judge):
            return self._noted(found)
        step = self.prepare(tokens, parents)[1]
        return self.answer(self.run(hidden, step, layer, self._model.shape.layers), 0)

    def run(self, x: Tokens, step: ForwardInputs | NativeInputs, start: int, stop: int) -> torch.Tensor:
        """Run the layers from `start` to `stop`, and note what enters the tapped ones."""
        taps = [layer for layer in self._taps.layers if start <= layer <= stop]
        states, x, delta = self._model.tapped(x, step, start, stop, taps)
        self._taps.note(states)
        return total(x, delta)

    def chain(self, rows: int) -> ChainPass | None:
        """Passes over so many rows behind the stored tokens, to be recorded; None where that cannot be."""
        model, first, cache = self._model, self.cache.length, self.cache
        parents = tuple(range(-1, rows - 1))
        if self._captured is None or model.step_rows or not model.splits(cache, first, parents):
            return None
        return ChainPass(model.buffered, cache, self._tables, model.shape.layers, first, model.cut(first), rows)

    def _noted(self, found: Outputs | Judged) -> Reading:
        """The answer of a pass that was captured."""
        if isinstance(found, Judged):
            self._taps.note(found.states)
            nothing = found.flat[:0].view(0, 0)
            return Reading(nothing, nothing, judged=found)
        *states, hidden, logits = found
        self._taps.note(states)
        return Reading(logits, hidden)

    def _replayed(
        self,
        part: PassSpec,
        tokens: Tokens,
        parents: Parents,
        ahead: int = 0,
        hidden: torch.Tensor | None = None,
        judge: PassJudge | None = None,
    ) -> Outputs | Judged | None:
        """What comes out of a pass that was captured; None where there is none, and nothing is done."""
        first, rows = self.cache.length + ahead, self._model.step_rows
        if (self._captured is None and rows is None) or not self._model.splits(self.cache, first, parents):
            return None
        self.cache.check(ahead + len(parents))
        found = None
        if self._captured is not None:
            found = self._captured.replay(part, tokens, parents, first, hidden, self._tables, rows, judge)
        if found is None and rows is not None and len(parents) <= rows:
            return self._filled_up(part, tokens, parents, first, hidden, rows)
        return found

    def _filled_up(
        self,
        part: PassSpec,
        tokens: Tokens,
        parents: Parents,
        first: int,
        hidden: torch.Tensor | None,
        rows: int,
    ) -> Outputs:
        """The same pass without a graph."""
        buffer, nodes = StepBuffer(rows, self._model.device), len(parents)
        buffer.fill(tokens, parents, first)
        buffer.take(tokens, parents)
        if hidden is not None:
            hidden = torch.cat((hidden, hidden.new_zeros(rows - nodes, hidden.shape[1])))
        outputs = self._model.buffered(buffer, hidden, self.cache, self._tables, self._model.cut(first), part)
        return tuple(output[:nodes] for output in outputs)

    def tap(self, *layers: int) -> None:
        """From now on record the hidden states with which each stored token enters these layers; none: stop."""
        self._taps.choose(layers)

    def tapped(self) -> torch.Tensor:  # (n, layers * H)
        """The hidden states recorded since the last call, of the last n stored tokens. A reset deletes them."""
        return self._taps.take()

    @torch.inference_mode()
    def prepare(self, tokens: Tokens, parents: Parents, ahead: int = 0) -> tuple[Tokens, ForwardInputs | NativeInputs]:
        """Ids and step for `Decoder.forward`; raises ModelError, with nothing written, where the rows do not fit."""
        self.cache.check(ahead + len(tokens))
        step = self._model.inputs(tokens, parents, self.cache, self._tables, ahead)
        return step.ids, step

    def answer(self, x: torch.Tensor, skip: int, only: Sequence[int] | None = None) -> Reading:
        """The reading of rows `skip` and later, or `only` some, of all (T, H) behind the last layer."""
        model = self._model
        hidden = model.final(asked(x, skip, only))
        if not len(hidden):
            return Reading(hidden.new_empty(0, model.shape.vocabulary), hidden)
        return Reading(model.head(hidden), hidden)

    def commit(self, rows: Sequence[int]) -> None:
        """Store the rows of the last reading that form a path from its root; the others are forgotten."""
        self.cache.commit(rows)
        self._taps.store(rows)

    def rewind(self, length: int) -> None:
        """Forget stored tokens behind `length`: at most `largest_step` of them."""
        self.cache.rewind(length)

    def keep(self, length: int, prompt_length: int) -> bool:
        """Start a text whose first `length` tokens are those stored, where they are rotated as this text asks for."""
        if self._model.rope.rotated_as(prompt_length) != self._rotated_as or not self.cache.holds(length):
            return False
        self.cache.rewind(length)
        self._taps.clear()
        return True

    @torch.inference_mode()
    def reset(self, prompt_length: int) -> None:
        """Start a new text."""
        self.cache.reset()
        self._taps.clear()
        self._rotated_as = self._model.rope.rotated_as(prompt_length)
        self._tables = self._model.rope.tables(prompt_length, self.capacity + self.largest_step)
