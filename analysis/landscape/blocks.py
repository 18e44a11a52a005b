"""A drafter that fills blocks, behind many positions of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .part_at import PartReader, SessionAt

if TYPE_CHECKING:
    from .target import Target

_CHUNK = 256  # rows of the text that are read at once


class _Block(NamedTuple):
    """A block after a part of the text."""

    length: int  # of the part
    root: int
    guesses: int


class _SessionAt(SessionAt):
    """The drafter's session at one position."""

    _reader: BlockReader

    def __init__(self, *at: Any) -> None:
        super().__init__(*at)
        self.length = self._end

    def read(self, states: torch.Tensor) -> None:
        """Read the text on."""
        self.length += len(states)

    def rewind(self, length: int) -> None:
        """Forget what follows `length`."""
        self.length = length

    def fill(self, root: int, guesses: int) -> torch.Tensor:  # (guesses, H)
        """Return the output layer's input of every guess."""
        assert self.length == self._end
        return self._ask(self._reader.fill, _Block(self.length, root, guesses))


class BlockReader(PartReader):
    """The drafter's session: it has read the features of the text once, and forgets them from the end on.

    A block's rows take the place of the features after it.
    """

    session_at = _SessionAt

    def __init__(self, part: Any, target: Target, room: int) -> None:
        """Make `room` for what may be written after the text."""
        self.part, self._states = part, target.states(part.layers)
        # With steps as long as the text, not even a rolling cache overwrites what is asked for again.
        longest = len(target.text)
        self.session = part.open(longest + room, max(_CHUNK, longest))
        self._hold(longest - 1)

    def begin(self, positions: Sequence[int]) -> None:
        """Do nothing: every question tells its position."""

    def fill(self, questions: Sequence[_Block]) -> list[torch.Tensor]:
        """Fill blocks, the last one first."""
        answers = dict[_Block, torch.Tensor]()
        for block in sorted(questions, reverse=True):
            self._hold(block.length)
            answers[block] = self.session.fill(block.root, block.guesses)
        return [answers[block] for block in questions]

    def _hold(self, length: int) -> None:
        """Let the session hold the features of so many tokens."""
        self.session.rewind(min(length, self.session.length))
        for start in range(self.session.length, length, _CHUNK):
            self.session.read(self._states[start : min(start + _CHUNK, length)])
