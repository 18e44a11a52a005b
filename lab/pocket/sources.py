"""Batches of the family's language, drawn fresh for every step: for the family's models, and for heads and adapters.

A step's batch depends on the seed and the step alone, so that a resumed training sees what an unbroken one would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from decoding.errors import ParamError
from decoding.types import JSON

from ..training.batches import Batch, pack_rows
from ..training.conversations import Conversation
from ..training.sources import check
from .encoding import SampleEncoder
from .language.kinds import DRILLED, KINDS, held_out_sample, long_training_sample, training_sample
from .language.sample import Sample
from .plans import Recipe
from .tokenizer import SPECIAL

_PER_KIND = 32  # held-out conversations of every kind of the language
_USUAL_LENGTH = 160  # tokens of a conversation, to guess how many fill the rest of a batch

Draw = Callable[[Random, float], Sample]  # a conversation, given the share of the training that is done


class FamilySource:
    """The training data of a model of the family: `draw` makes conversations, for every share of the training."""

    held_out: Sequence[Batch] = ()  # nothing is shown twice, so the loss itself is that on unseen conversations

    def __init__(self, encoder: SampleEncoder, draw: Draw, recipe: Recipe, seed: int) -> None:
        self._encoder, self._draw, self._recipe, self._seed = encoder, draw, recipe, seed
        self.about: Mapping[str, JSON] = {"data": "the embedded family's language"}

    def draw(self, step: int) -> Batch:
        """Draw fresh conversations; at times, once the drills are over, long ones in lines twice as long."""
        recipe, share = self._recipe, step / self._recipe.steps
        rng = Random(f"{self._seed}/{step}")
        if step % recipe.long_every == 0 and share > DRILLED:
            return draw_batch(self._encoder, lambda: long_training_sample(rng), recipe.lines // 2, recipe.length * 2)
        return draw_batch(self._encoder, lambda: self._draw(rng, share), recipe.lines, recipe.length)


class LanguageSource:
    """The training data of heads and adapters if no file is named: all kinds of conversation alike."""

    def __init__(self, tokenizer: Any, vocabulary: int, *, lines: int, length: int, seed: int) -> None:
        if not set(SPECIAL) <= tokenizer.get_vocab().keys():
            raise ParamError("only a model of the embedded family speaks its language: name a file with --data")
        self._encoder, self._lines, self._length, self._seed = SampleEncoder(tokenizer), lines, length, seed
        rng = Random(f"{seed}/held out")
        samples = [held_out_sample(kind, rng) for kind in KINDS for _ in range(_PER_KIND)]
        rows = [row for row in self._encoder.rows(samples) if len(row.ids) <= length]
        if len(rows) < len(samples) // 2:
            raise ParamError(f"few conversations of the language fit into lines of {length} tokens: raise --length")
        measured = check(pack_rows(rows, length, self._encoder.pad), vocabulary, "to measure with")
        self.held_out: Sequence[Batch] = [*measured.select(slice(None)).parts(lines)]
        self.about: Mapping[str, JSON] = {"data": "the embedded family's language"}

    def draw(self, step: int) -> Batch:
        """Draw fresh conversations."""
        rng = Random(f"{self._seed}/{step}")
        return draw_batch(self._encoder, lambda: training_sample(rng, 1.0), self._lines, self._length)


def draw_batch(encoder: SampleEncoder, draw: Callable[[], Sample], lines: int, length: int) -> Batch:
    """Draw as many conversations as fill the lines, packed with the longest first; what finds no room is left out."""
    rows = []
    room = lines * length
    while room > 0:
        for row in encoder.rows([draw() for _ in range(1 + room // _USUAL_LENGTH)]):
            rows.append(row)
            room -= len(row.ids)
    batch = pack_rows(sorted(rows, key=lambda row: -len(row.ids)), length, encoder.pad, lines)
    if not batch.learnt.any():
        raise ValueError(f"no conversation fits into a line of {length} tokens")
    return batch.select(slice(None))


def language_prompts(count: int, seed: int) -> list[Conversation]:
    """Draw conversations of the language, for a model to answer in its own words."""
    rng = Random(f"{seed}/prompts")
    return [_conversation(training_sample(rng, 1.0)) for _ in range(count)]


def _conversation(sample: Sample) -> Conversation:
    turns = sample.turns
    return Conversation(tuple(turn.prompt for turn in turns), tuple(turn.answer for turn in turns), sample.system)
