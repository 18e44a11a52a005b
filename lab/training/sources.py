"""The sources of a training's batches; here, a file of conversations, epoch by epoch.

A step's batch depends on the seed and the step alone, so that a resumed training sees the same as an uninterrupted one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import ceil
from random import Random
from typing import Any, Protocol

import torch

from decoding.errors import ModelError, ParamError
from decoding.model.session import ProgressCallback
from decoding.types import JSON

from .batches import Batch, TrainingRow, pack_rows
from .conversations import Conversation, split
from .encoding import ChatEncoder

_HELD_OUT_TOKENS = 65_536


class Source(Protocol):
    """Batches to learn from, and batches to measure with."""

    about: Mapping[str, JSON]  # by which one source differs from another
    held_out: Sequence[Batch]

    def draw(self, step: int) -> Batch:
        """Return the batch of that step."""
        ...


class FileSource:
    """Packed conversations; every epoch goes through all lines in another order."""

    def __init__(
        self,
        conversations: Sequence[Conversation],
        encoder: ChatEncoder,
        tokenizer: Any,
        vocabulary: int,
        *,
        lines: int,
        length: int,
        seed: int,
        progress: ProgressCallback,
    ) -> None:
        self._lines, self._seed = lines, seed
        pad = next((token for token in (tokenizer.pad_token_id, tokenizer.eos_token_id) if token is not None), 0)
        learnt, held_out = split(conversations)
        self._all = check(pack_rows(_rows(learnt, encoder, progress), length, pad), vocabulary, "to learn from")
        measured = check(pack_rows(_rows(held_out, encoder, progress), length, pad), vocabulary, "to measure with")
        self.held_out: Sequence[Batch] = [*measured.select(slice(0, ceil(_HELD_OUT_TOKENS / length))).parts(lines)]
        digest = hashlib.sha256()
        for batch in (self._all, measured):
            digest.update(batch.ids.numpy().tobytes())
        self.about: Mapping[str, JSON] = {"data": digest.hexdigest()[:16], "conversations": len(conversations)}
        self._order = lru_cache(maxsize=2)(self._shuffled)

    def steps(self, epochs: float) -> int:
        """Count the steps that `epochs` epochs take."""
        return max(1, round(epochs * len(self._all.ids) / self._lines))

    def draw(self, step: int) -> Batch:
        """Draw the next lines of the epoch, and where it ends the first of the next."""
        first, count = step * self._lines, len(self._all.ids)
        chosen = [self._order(place // count)[place % count] for place in range(first, first + self._lines)]
        return self._all.select(torch.tensor(chosen))

    def _shuffled(self, epoch: int) -> list[int]:
        order = list(range(len(self._all.ids)))
        Random(f"{self._seed}/{epoch}").shuffle(order)
        return order


def _rows(
    conversations: Sequence[Conversation], encoder: ChatEncoder, progress: ProgressCallback
) -> Iterator[TrainingRow]:
    for number, conversation in enumerate(conversations):
        if number % 500 == 0:
            progress("encoding conversations", number / len(conversations))
        try:
            yield from encoder.rows(conversation)
        except ParamError as error:
            raise ParamError(f"{error} (it begins {(conversation.prompts or ('',))[0][:60]!r})") from None


def check(batch: Batch, vocabulary: int, purpose: str) -> Batch:
    """Refuse data from which nothing can be learnt, and a tokenizer that is not the model's."""
    if not batch.learnt.any():
        raise ParamError(
            f"the conversations {purpose} hold no answers: give some with answers, or let the model write its own "
            "with --self-distill"
        )
    largest = int(batch.ids.max())
    if largest >= vocabulary:
        raise ModelError(
            f"the tokenizer writes the id {largest}, but the model's vocabulary has {vocabulary} entries: "
            "the two do not belong together"
        )
    return batch
