"""A drafter on features that reads after many positions of a text in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .part_at import PartReader, SessionAt

if TYPE_CHECKING:
    from decoding.model.upload import Tokens

    from .target import Target

_CHUNK = 256  # rows of the text that are read at once

_Rows = tuple[torch.Tensor, torch.Tensor]  # what `logits` takes, and the features for the next rows


class _Guesses(NamedTuple):
    """Guesses after others in the session's tree; -1: after the text in front of the tree."""

    tokens: Sequence[int]
    features: torch.Tensor
    parents: Sequence[int]


class _SessionAt(SessionAt):
    """The drafter's session at one position."""

    _reader: FeatureReader

    def __init__(self, *at: Any) -> None:
        super().__init__(*at)
        self.length = self._end - 1
        self._rows = list[int]()  # of its guesses in the tree of all

    def read(self, tokens: Sequence[int], states: torch.Tensor) -> _Rows:
        """Return what was read of the text's next tokens."""
        first, self.length = self.length, self.length + len(tokens)
        final, feature = self._reader.of_text
        return final[first : self.length], feature[first : self.length]

    def follow(self, tokens: Sequence[int], states: torch.Tensor) -> _Rows:
        """Return what was read of the last of these tokens."""
        final, feature = self.read(tokens, states)
        return final[-1:], feature[-1:]

    def grow(self, tokens: Tokens, features: torch.Tensor, parents: Sequence[int] | torch.Tensor) -> _Rows:
        """Read more rows of a tree after the text; a parent is an earlier row of the tree, or -1 for the text."""
        assert self.length == self._end
        ids, above = (each.tolist() if isinstance(each, torch.Tensor) else each for each in (tokens, parents))
        rows = [self._reader.row(self._end) if parent < 0 else self._rows[parent] for parent in above]
        first, answer = self._ask(self._reader.read, _Guesses(ids, features, rows))
        self._rows += range(first, first + len(ids))
        return answer

    def forget(self) -> None:
        """Forget the tree."""
        self._rows = []

    def rewind(self, length: int) -> None:
        """Forget what follows `length`."""
        self.forget()
        self.length = length

    def features(self, states: torch.Tensor) -> torch.Tensor:
        """Compute the features of tapped states."""
        features: torch.Tensor = self._reader.session.features(states)
        return features


class FeatureReader(PartReader):
    """The drafter's session: it has read the text once, and holds a tree with the guesses of several positions.

    The tree begins with the part of the text that has the positions, so every guess sees the text up to its own.
    """

    session_at = _SessionAt

    def __init__(self, part: Any, target: Target, room: int, guesses: int) -> None:
        """Make `room` for what may be written after the text; `guesses` of all positions are read together."""
        self.part, self._text, self._states = part, target.text, target.states(part.layers)
        # With steps as long as the text, not even a rolling cache overwrites what is asked for again.
        largest = max(_CHUNK, len(self._text)) + guesses
        self.session = part.open(len(self._text) + room, largest)
        rows: list[_Rows] = []
        for start in range(0, len(self._text) - 1, _CHUNK):
            tokens = self._text[start + 1 : start + 1 + _CHUNK]
            rows.append(self.session.read(tokens, self._states[start : start + len(tokens)]))
        self.of_text = torch.cat([final for final, _ in rows]), torch.cat([feature for _, feature in rows])
        self._start = self._rows = 0  # rows of the text in front of the tree, and of the tree

    def begin(self, positions: Sequence[int]) -> None:
        """Begin a tree for these positions."""
        # A row fewer than tokens, and the root is not yet read.
        self._start, last = min(positions) - 1, max(positions) - 1
        self.session.rewind(self._start)
        self._rows = last - self._start
        if self._rows:
            features = self.session.features(self._states[self._start : last])
            self.session.grow(self._text[self._start + 1 : last + 1], features, range(-1, self._rows - 1))

    def row(self, length: int) -> int:
        """Return the tree's row of the text's row `length`."""
        return length - 1 - self._start

    def read(self, questions: Sequence[_Guesses]) -> list[tuple[int, _Rows]]:
        """Read guesses; return the tree's first row of each, and the answers."""
        tokens = [token for asked in questions for token in asked.tokens]
        parents = [parent for asked in questions for parent in asked.parents]
        both = self.session.grow(tokens, torch.cat([asked.features for asked in questions]), parents)
        counts, answers = [len(asked.tokens) for asked in questions], []
        for final, feature in zip(*(torch.split(each, counts) for each in both), strict=True):
            answers.append((self._rows, (final, feature)))
            self._rows += len(final)
        return answers
