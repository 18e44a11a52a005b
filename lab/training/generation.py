"""Writes texts of a model after many prompts at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from decoding.model.decoder import Decoder
from decoding.ranking import likeliest
from decoding.sampling import Draws, Sampler, Sampling, draw

from .text_batch import TextBatch

_ROWS = 256  # tokens of prompts and texts in a pass: enough to read the weights for, few enough for the cache
_PIECE = 64  # tokens of one prompt in a pass


@dataclass(frozen=True, slots=True)
class SeededPrompt:
    """The beginning of a text, and the seed of its draws."""

    ids: Sequence[int]
    seed: int


@dataclass(slots=True)
class _Text:
    """A text as it grows."""

    number: int  # of its prompt
    draws: Draws
    waiting: list[int]  # tokens that the model has not read
    length: int
    written: list[int] = field(default_factory=list)


class Generation:
    """Writes as autoregressive decoding would with the same seed, token by token, `at_once` texts at a time."""

    def __init__(self, model: Decoder, ends: Collection[int], *, at_once: int, length: int, temperature: float) -> None:
        """Make room for `length` tokens of prompt and text together."""
        self._model, self._ends, self._length, self._at_once = model, ends, length, at_once
        self._texts = TextBatch(model, at_once, length)
        self._sampler = Sampler(Sampling(temperature=temperature), model.card.vocabulary, model.device, ())

    def write(self, prompts: Sequence[SeededPrompt]) -> Iterator[tuple[int, list[int]]]:
        """Yield each prompt's number and text as soon as it is done: up to an end, or until it was full."""
        left = iter(enumerate(prompts))
        active: dict[int, _Text] = {}
        while True:
            for place in range(self._at_once):
                if place not in active and (waiting := next(left, None)) is not None:
                    number, prompt = waiting
                    self._texts.clear(place)
                    active[place] = _Text(number, Draws(prompt.seed), list(prompt.ids), len(prompt.ids))
            if not active:
                return
            for place in self._extend(active):
                text = active.pop(place)
                yield text.number, text.written

    def _extend(self, active: dict[int, _Text]) -> list[int]:
        """Feed one pass; return the slots of the texts that are done."""
        pieces = self._pieces(active)
        hidden = self._texts.feed(pieces)
        for place, piece in pieces.items():
            del active[place].waiting[: len(piece)]
        rows = [row for row, place in enumerate(pieces) if not active[place].waiting]
        asked = [active[place] for place in pieces if not active[place].waiting]
        if not asked:
            return []
        for text, token in zip(asked, self._choose(hidden[rows], asked), strict=True):
            text.written.append(token)
            text.waiting.append(token)
        return [place for place in pieces if self._is_done(active[place])]

    def _is_done(self, text: _Text) -> bool:
        if not text.written:
            return False
        return text.written[-1] in self._ends or text.length + len(text.written) >= self._length

    def _pieces(self, active: dict[int, _Text]) -> dict[int, list[int]]:
        """Choose the tokens to feed of every text, the fewest first, so that texts grow beside long prompts."""
        pieces, room = dict[int, list[int]](), _ROWS
        for place, text in sorted(active.items(), key=lambda item: len(item[1].waiting)):
            piece = text.waiting[: min(_PIECE, room)]
            if piece:
                pieces[place] = piece
                room -= len(piece)
        return pieces

    def _choose(self, hidden: torch.Tensor, texts: Sequence[_Text]) -> list[int]:
        logits = self._model.head(hidden)
        if self._sampler.sampling.greedy:
            return likeliest(logits)
        rows = zip(self._sampler.probabilities(logits), texts, strict=True)
        return [draw(row, text.draws.at(len(text.written))) for row, text in rows]
