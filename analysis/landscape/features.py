"""A drafter on features that reads behind many places of a text in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .part_at_place import OutputLayer, PartAt
from .together import ask

if TYPE_CHECKING:
    from decoding.model.upload import Tokens

    from .target import Target

_CHUNK = 256  # rows of the text that are read at once

Pair = tuple[torch.Tensor, torch.Tensor]  # what a session answers: for logits, and for the next row


class _Guesses(NamedTuple):
    """Guesses that stand behind others in the session's tree; -1: behind the text in front of the tree."""

    tokens: Sequence[int]
    features: torch.Tensor
    parents: Sequence[int]


class FeatureReader:
    """The drafter's session: it has read the text once, and holds a tree with the guesses of several places.

    The tree begins as the part of the text in which the places lie, so every guess sees the text up to its own place.
    """

    def __init__(self, part: Any, target: Target, room: int, guesses: int) -> None:
        """`room` is for what may be written behind the text, `guesses` how many of all places are read together."""
        self._part, self._text, self._states = part, target.text, target.states(part.layers)
        # With steps as long as the text, not even a rolling cache overwrites what is asked for again.
        largest = max(_CHUNK, len(self._text)) + guesses
        self.session = part.open(len(self._text) + room, largest)
        self.logits = OutputLayer(self.session)
        found = list[Pair]()
        for start in range(0, len(self._text) - 1, _CHUNK):
            tokens = self._text[start + 1 : start + 1 + _CHUNK]
            found.append(self.session.read(tokens, self._states[start : start + len(tokens)]))
        self.read = torch.cat([one for one, _ in found]), torch.cat([other for _, other in found])  # of every row
        self._start = self._rows = 0  # rows of the text in front of the tree, and of the tree

    def begin(self, places: Sequence[int]) -> None:
        """Begin a tree for these places."""
        self._start, last = min(places) - 1, max(places) - 1  # a row fewer than tokens, and the root is not yet read
        self.session.rewind(self._start)
        self._rows = last - self._start
        if self._rows:
            features = self.session.features(self._states[self._start : last])
            self.session.grow(self._text[self._start + 1 : last + 1], features, range(-1, self._rows - 1))

    def at(self, place: int) -> PartAt:
        """The part as a run meets it whose text is read up to that place."""
        return PartAt(self._part, partial(_SessionAt, self, place - 1))

    def row(self, length: int) -> int:
        """Where so many rows of the text end in the tree."""
        return length - 1 - self._start

    def answer(self, questions: Sequence[_Guesses]) -> list[tuple[int, Pair]]:
        """Read guesses; where their rows begin in the tree, and the answers."""
        tokens = [token for asked in questions for token in asked.tokens]
        parents = [parent for asked in questions for parent in asked.parents]
        pair = self.session.grow(tokens, torch.cat([asked.features for asked in questions]), parents)
        counts, found, first = [len(asked.tokens) for asked in questions], list[tuple[int, Pair]](), self._rows
        for one, other in zip(*(torch.split(each, counts) for each in pair), strict=True):
            found.append((first, (one, other)))
            first += len(one)
        self._rows = first
        return found


class _SessionAt:
    """The drafter's session as a run meets it at one place."""

    def __init__(self, reader: FeatureReader, length: int, largest_step: int) -> None:
        self.length, self.largest_step = length - 1, largest_step
        self._reader, self._end = reader, length
        self._rows = list[int]()  # of its guesses in the tree of all

    def read(self, tokens: Sequence[int], states: torch.Tensor) -> Pair:
        """Read the text on, which has been read."""
        first, self.length = self.length, self.length + len(tokens)
        one, other = self._reader.read
        return one[first : self.length], other[first : self.length]

    def grow(self, tokens: Tokens, features: torch.Tensor, parents: Sequence[int] | torch.Tensor) -> Pair:
        """Read more rows of a tree behind the text; a parent is an earlier row of the tree, or -1 for the text."""
        assert self.length == self._end
        ids, above = (each.tolist() if isinstance(each, torch.Tensor) else each for each in (tokens, parents))
        rows = [self._reader.row(self._end) if parent < 0 else self._rows[parent] for parent in above]
        first, pair = ask(self._reader, _Guesses(ids, features, rows))
        self._rows += range(first, first + len(ids))
        return pair

    def forget(self) -> None:
        """Forget the tree."""
        self._rows = []

    def rewind(self, length: int) -> None:
        """Forget what stands behind `length`."""
        self.forget()
        self.length = length

    def features(self, states: torch.Tensor) -> torch.Tensor:
        """The features that tapped states make."""
        made: torch.Tensor = self._reader.session.features(states)
        return made

    def logits(self, rows: torch.Tensor) -> torch.Tensor:
        """What follows each row, over the tokens that may be drafted."""
        return ask(self._reader.logits, rows)
