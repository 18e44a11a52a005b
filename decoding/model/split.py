"""Splits a model that is too large for one device: its layers follow one another over several of one process.

Every section is a decoder of some layers, with a cache, tables and masks of its own. Hidden states move from device to
device, and a step's work is queued on all of them without the host waiting in between.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from ..errors import ModelError
from ..types import ModelCard
from .cached_session import requested
from .captured import SAME_ROWS
from .config import Shape
from .decoder import Decoder, Inputs
from .decoder_session import DecoderSession
from .layout import Layout
from .rope import Rope
from .session import Reading
from .upload import on_device
from .weights import DecoderWeights

if TYPE_CHECKING:
    from .queued_tree import Parents
    from .upload import Tokens


class Section(Decoder):
    """Some layers of a model on one device. The first section embeds ids, the last has the final norm and the head."""

    def __init__(
        self, full: Shape, weights: DecoderWeights, layers: range, device: torch.device, rope: Rope, card: ModelCard
    ) -> None:
        shape = replace(full, layers=len(layers), windows=full.windows[layers.start : layers.stop])
        # The final norm is copied too: a decoder takes its device from there.
        section = replace(weights, layers=weights.layers[layers.start : layers.stop], norm=weights.norm.to(device))
        super().__init__(shape, section, rope, card)
        self.recorder = None  # a step goes through several devices, so none of them records it
        self.rolling = full.rolling  # all caches forget alike, even if only one section's layers have windows


class SplitDecoder:
    """A decoder over several devices. Its sessions' answers are on `device`, the last of them."""

    def __init__(
        self, shape: Shape, weights: DecoderWeights, ropes: Sequence[Rope], card: ModelCard, layout: Layout
    ) -> None:
        """`ropes`: one for each device."""
        self.shape, self.card, self.devices, self.layers = shape, card, layout.devices, layout.layers
        self.sections = [
            Section(shape, weights, layers, device, rope, card)
            for layers, device, rope in zip(layout.layers, layout.devices, ropes, strict=True)
        ]
        last = self.sections[-1]
        self.device, self.dtype, self.precision = last.device, last.dtype, last.precision
        self.window, self.rolling = shape.window, shape.rolling
        self.lacks: Mapping[str, str] = {}
        self.step_rows: int | None = None
        if last.step_rows is not None:
            raise ModelError(f"{SAME_ROWS} is for models on one device: leave it out, or name one device")
        self.attention = "; ".join(dict.fromkeys(section.attention for section in self.sections))

    def open(self, capacity: int, largest_step: int) -> SplitSession:
        """Open a session for texts of up to `capacity` tokens."""
        return SplitSession(self, capacity, largest_step)

    def embed(self, ids: Tokens) -> torch.Tensor:  # T ids -> (T, H)
        """Look the tokens' input embeddings up, and copy them to the last device."""
        first = self.sections[0]
        return first.embed(on_device(ids, first.device)).to(self.device)

    def head(self, x: torch.Tensor) -> torch.Tensor:  # (R, H) after the final norm -> (R, V)
        """Compute the logits."""
        return self.sections[-1].head(x)

    def embeddings(self) -> tuple[torch.Tensor, torch.Tensor]:  # (V, H), (V, H)
        """Return the input embeddings, and those of the output layer, both on the last device."""
        inputs, output = self.sections[-1].embeddings()
        return inputs.to(self.device), output


AnyDecoder = Decoder | SplitDecoder


class SplitSession:
    """One text under a split decoder: a session for each of its sections, all with the same tokens stored."""

    def __init__(self, model: SplitDecoder, capacity: int, largest_step: int) -> None:
        self.capacity, self.largest_step = capacity, largest_step
        self._model = model
        self._sessions = [DecoderSession(section, capacity, largest_step) for section in model.sections]
        self._first = self._sessions[0]
        self.seam = self._first.seam
        self._tapping = [self._first]  # the sessions of sections with tapped layers

    @property
    def length(self) -> int:
        """Return the number of stored tokens."""
        return self._first.length

    @torch.inference_mode()
    def read(self, tokens: Tokens, parents: Parents, skip: int = 0, only: Sequence[int] | None = None) -> Reading:
        """Feed a tree whose root follows the stored tokens; answer for the requested rows."""
        model, last = self._model, self._model.sections[-1]
        x = self._enter(tokens, self._prepare(tokens, parents), model.shape.layers)
        hidden = last.final(requested(x, skip, only))
        return Reading(last.head(hidden), hidden)

    @torch.inference_mode()
    def enter(
        self, tokens: Tokens, layer: int, ahead: int = 0, parents: tuple[int, ...] | None = None
    ) -> torch.Tensor:  # (n, H)
        """Run a chain, or a tree, `ahead` rows after the stored tokens through the layers before `layer`."""
        inputs = self._prepare(tokens, parents or tuple(range(-1, len(tokens) - 1)), ahead)
        return self._enter(tokens, inputs, layer)

    @torch.inference_mode()
    def resume(self, tokens: Tokens, parents: tuple[int, ...], layer: int, hidden: torch.Tensor) -> Reading:
        """Continue from `layer` with the hidden states of a tree that has entered it; answer for every row."""
        model, last = self._model, self._model.sections[-1]
        hidden = last.final(self._run(hidden, self._prepare(tokens, parents), layer, model.shape.layers))
        return Reading(last.head(hidden), hidden)

    def tap(self, *layers: int) -> None:
        """Record the hidden states entering these layers for every stored token; without layers, stop recording."""
        starts = [section.start for section in self._model.layers]
        taps = [(bisect_right(starts, layer) - 1, layer) for layer in layers]  # the last output is the last section's
        for at, session in enumerate(self._sessions):
            session.tap(*(layer - starts[at] for section, layer in taps if section == at))
        self._tapping = [self._sessions[at] for at in dict.fromkeys(section for section, _ in taps)] or [self._first]

    def tapped(self) -> torch.Tensor:  # (n, layers * H)
        """Return the states recorded since the last call, of the last n stored tokens. A reset deletes them."""
        parts = [session.tapped().to(self._model.device) for session in self._tapping]
        return torch.cat(parts, 1) if len(parts) > 1 else parts[0]

    def commit(self, rows: Sequence[int]) -> None:
        """Store those rows of the last reading, a path from its root; forget the others."""
        for session in self._sessions:
            session.commit(rows)

    def rewind(self, length: int) -> None:
        """Forget stored tokens after `length`: at most `largest_step` of them."""
        for session in self._sessions:
            session.rewind(length)

    def keep(self, length: int, prompt_length: int) -> bool:
        """Start a text with the first `length` stored tokens; all sections can, or none."""
        return all(session.keep(length, prompt_length) for session in self._sessions)

    def reset(self, prompt_length: int) -> None:
        """Start a new text."""
        for session in self._sessions:
            session.reset(prompt_length)

    def _prepare(self, tokens: Tokens, parents: Parents, ahead: int = 0) -> list[Inputs]:
        return [session.prepare(tokens, parents, ahead)[1] for session in self._sessions]

    def _enter(self, tokens: Tokens, inputs: Sequence[Inputs], stop: int) -> torch.Tensor:
        return self._run(on_device(tokens, self._model.devices[0]), inputs, 0, stop)

    def _run(self, x: torch.Tensor, inputs: Sequence[Inputs], start: int, stop: int) -> torch.Tensor:
        """Run the layers from `start` to `stop`, each on its device, and copy the result to the last device."""
        model = self._model
        for session, device, layers, step in zip(self._sessions, model.devices, model.layers, inputs, strict=True):
            first, end = max(start, layers.start), min(stop, layers.stop)
            # Ids are embedded even if no layer runs. After the last layer no layer is left, but its output may have to
            # be recorded.
            if first < end or x.dim() == 1 or start == stop == layers.stop:
                x = session.run(x.to(device), step, first - layers.start, end - layers.start)
        return x.to(model.device)
