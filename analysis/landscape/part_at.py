"""A method's part at a position of a text, where all positions share one session of the part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch

if TYPE_CHECKING:
    from .questions import Ask


class PartReader(ABC):
    """The session, which has read the text once."""

    part: Any
    session: Any
    session_at: ClassVar[type[SessionAt]]  # of one position

    @abstractmethod
    def begin(self, positions: Sequence[int]) -> None:
        """Begin with these positions, which are in front of all earlier ones."""

    def at(self, position: int, ask: Ask) -> PartAt:
        """Return the part as a run has it that begins there."""
        return PartAt(self, position - 1, ask)

    def logits(self, questions: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """Compute the logits of rows."""
        return torch.split(self.session.logits(torch.cat([*questions])), [len(rows) for rows in questions])


class PartAt:
    """The part at one position."""

    def __init__(self, reader: PartReader, length: int, ask: Ask) -> None:
        self._reader, self._length, self._ask = reader, length, ask

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader.part, name)

    def open(self, capacity: int, largest_step: int) -> SessionAt:
        """Make a session that has read the text there."""
        return self._reader.session_at(self._reader, self._length, self._ask, largest_step)


class SessionAt:
    """A session at one position, after `length` tokens that the target has stored."""

    _reader: PartReader
    replays = None  # a device records nothing that positions share

    def __init__(self, reader: Any, length: int, ask: Ask, largest_step: int) -> None:
        self._reader, self._end, self._ask, self.largest_step = reader, length, ask, largest_step

    def width(self, rows: int) -> int:
        """Return 0: no work is recorded."""
        return 0

    def logits(self, rows: torch.Tensor) -> torch.Tensor:
        """Return next-token logits for these rows, over the draft vocabulary."""
        return self._ask(self._reader.logits, rows)
