"""Where batches come from: a file of conversations, epoch by epoch, or the embedded family's language without end.

A step's batch depends on the seed and the step alone, so that a resumed training sees what an unbroken one would.
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
from decoding.types import JSON

from ..pocket import batches
from ..pocket.batches import Row
from ..pocket.language.kinds import KINDS, held_out_sample, training_sample
from ..pocket.language.sample import Sample
from ..pocket.tokenizer import ASSISTANT, END, PAD, START, SYSTEM, USER
from .conversations import Conversation, Tell, split
from .rows import Batch, Writer, from_generator, pack

_HELD_OUT_TOKENS = 65_536
_PER_KIND = 32  # held-out conversations of every kind of the language


class Source(Protocol):
    """Batches to learn from, and batches to measure with."""

    about: Mapping[str, JSON]  # what tells one source from another
    held_out: Sequence[Batch]

    def draw(self, step: int) -> Batch:
        """The batch of that step."""
        ...


class FileSource:
    """Packed conversations; every epoch goes through all lines in another order."""

    def __init__(
        self,
        conversations: Sequence[Conversation],
        writer: Writer,
        tokenizer: Any,
        vocabulary: int,
        *,
        lines: int,
        length: int,
        seed: int,
        tell: Tell,
    ) -> None:
        self._lines, self._seed = lines, seed
        pad = next((token for token in (tokenizer.pad_token_id, tokenizer.eos_token_id) if token is not None), 0)
        learnt, held_out = split(conversations)
        self._all = _checked(pack(_rows(learnt, writer, tell), length, pad), vocabulary, "to learn from")
        measured = _checked(pack(_rows(held_out, writer, tell), length, pad), vocabulary, "to measure with")
        self.held_out: Sequence[Batch] = [*_long(measured, slice(0, ceil(_HELD_OUT_TOKENS / length))).parts(lines)]
        digest = hashlib.sha256()
        for batch in (self._all, measured):
            digest.update(batch.ids.numpy().tobytes())
        self.about: Mapping[str, JSON] = {"data": digest.hexdigest()[:16], "conversations": len(conversations)}
        self._order = lru_cache(maxsize=2)(self._shuffled)

    def steps(self, epochs: float) -> int:
        """The steps that so many epochs take."""
        return max(1, round(epochs * len(self._all.ids) / self._lines))

    def draw(self, step: int) -> Batch:
        """The next lines of the epoch, and the first of the one behind it where it ends."""
        first, count = step * self._lines, len(self._all.ids)
        chosen = [self._order(place // count)[place % count] for place in range(first, first + self._lines)]
        return _long(self._all, torch.tensor(chosen))

    def _shuffled(self, epoch: int) -> list[int]:
        order = list(range(len(self._all.ids)))
        Random(f"{self._seed}/{epoch}").shuffle(order)
        return order


class Generated:
    """The embedded family's language, drawn anew for every step."""

    def __init__(self, tokenizer: Any, vocabulary: int, *, lines: int, length: int, seed: int) -> None:
        if not {START, END, PAD, SYSTEM, USER, ASSISTANT} <= tokenizer.get_vocab().keys():
            raise ParamError("only a model of the embedded family speaks its language: name a file with --data")
        self._rows, self._lines, self._length, self._seed = batches.Rows(tokenizer), lines, length, seed
        rng = Random(f"{seed}/held out")
        samples = [held_out_sample(kind, rng) for kind in KINDS for _ in range(_PER_KIND)]
        rows = [row for row in self._rows.encode(samples) if len(row.ids) <= length]
        if len(rows) < len(samples) // 2:
            raise ParamError(f"few conversations of the language fit into lines of {length} tokens: raise --length")
        measured = _checked(pack(rows, length, self._rows.pad), vocabulary, "to measure with")
        self.held_out: Sequence[Batch] = [*_long(measured, slice(None)).parts(lines)]
        self.about: Mapping[str, JSON] = {"data": "the language of decoding/training/language"}

    def draw(self, step: int) -> Batch:
        """Fresh conversations."""
        rng = Random(f"{self._seed}/{step}")
        drawn = batches.pack(self._rows, lambda: training_sample(rng, 1.0), self._lines, self._length)
        return from_generator(drawn)


def language_prompts(count: int, seed: int) -> list[Conversation]:
    """Conversations of the language, for a model to answer in its own words."""
    rng = Random(f"{seed}/prompts")
    return [_conversation(training_sample(rng, 1.0)) for _ in range(count)]


def _conversation(sample: Sample) -> Conversation:
    turns = sample.turns
    return Conversation(tuple(turn.prompt for turn in turns), tuple(turn.answer for turn in turns), sample.system)


def _rows(conversations: Sequence[Conversation], writer: Writer, tell: Tell) -> Iterator[Row]:
    for number, conversation in enumerate(conversations):
        if number % 500 == 0:
            tell("encoding conversations", number / len(conversations))
        try:
            yield from writer.rows(conversation)
        except ParamError as error:
            raise ParamError(f"{error} (it begins {(conversation.prompts or ('',))[0][:60]!r})") from None


def _long(batch: Batch, which: slice | torch.Tensor) -> Batch:
    """Some lines as a model takes them; the store keeps its numbers in half the room."""
    return Batch(batch.ids[which].long(), batch.positions[which].long(), batch.learnt[which])


def _checked(batch: Batch, vocabulary: int, purpose: str) -> Batch:
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
