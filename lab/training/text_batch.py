"""Feeds many texts to one decoder in one pass, to write a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from decoding.model.cache import Cache
from decoding.model.decoder import Decoder
from decoding.model.native_layers import NativeInputs


class TextBatch:
    """Up to `count` texts of up to `length` tokens. A text's numbers do not depend on the others."""

    def __init__(self, model: Decoder, count: int, length: int) -> None:
        shape = model.shape
        self._model, self._length = model, length
        self._slots = np.arange(count * length, dtype=np.int32).reshape(count, length)
        sizes = (shape.layers, shape.kv_heads, shape.head_dim, count * length, 0, None)
        self._cache = Cache(*sizes, model.device, model.dtype)
        self._tables = model.rope.tables(0, length)
        self._stored = [0] * count

    @staticmethod
    def suit(model: Decoder, length: int) -> bool:
        """Return whether such texts can be written: in compiled code, and rotated alike whatever their prompt."""
        return model.compiled and model.rope.rotated_as(length) == 0

    def clear(self, text: int) -> None:
        """Make room for another text."""
        self._stored[text] = 0

    @torch.inference_mode()
    def feed(self, pieces: Mapping[int, Sequence[int]]) -> torch.Tensor:  # (pieces, H) after the final norm
        """Append tokens to texts, by the texts' numbers; return the hidden states of the last token of each."""
        tokens = [token for piece in pieces.values() for token in piece]
        counts = [len(piece) for piece in pieces.values()]
        positions = [at for text, piece in pieces.items() for at in self._append(text, len(piece))]
        slots = self._slots[np.repeat([*pieces], counts), : max(positions) + 1]
        inputs = NativeInputs.of_texts(
            tokens, np.array(positions, np.int32), slots, self._cache, self._tables, self._model.shape
        )
        x = self._model.forward(inputs.ids, inputs)
        return self._model.final(x[torch.tensor(counts).cumsum(0) - 1])

    def _append(self, text: int, count: int) -> range:
        """Return the positions of the next tokens of a text."""
        first = self._stored[text]
        assert first + count <= self._length
        self._stored[text] += count
        return range(first, first + count)
