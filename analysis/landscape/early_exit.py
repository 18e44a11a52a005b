"""An early exit that drafts at many positions of a text in one pass: the target's first layers, and an adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .joined_trees import ROWS, passes
from .part_at import PartReader, SessionAt

if TYPE_CHECKING:
    from .target import Target


class _States(NamedTuple):
    """Hidden states of a chain after a part of the text."""

    length: int  # of the part
    stored: torch.Tensor  # (n, H) those that the adapter has read before
    fresh: torch.Tensor  # (m, H)


class _SessionAt(SessionAt):
    """The adapter's session at one position."""

    _reader: ExitReader

    def __init__(self, *at: Any) -> None:
        super().__init__(*at)
        self._stored: torch.Tensor | None = None  # (n, H) states that were read after the text

    @property
    def length(self) -> int:
        """Tokens read."""
        return self._end + (0 if self._stored is None else len(self._stored))

    def read(self, hidden: torch.Tensor) -> torch.Tensor:  # (n, H) -> (n, H)
        """Read the next tokens' hidden states at the exit layer."""
        stored = hidden[:0] if self._stored is None else self._stored
        self._stored = torch.cat((stored, hidden))
        return self._ask(self._reader.read, _States(self._end, stored, hidden))

    def rewind(self, length: int) -> None:
        """Forget what follows `length`, which is not inside the text."""
        assert self._end <= length <= self.length
        self._stored = None if self._stored is None else self._stored[: length - self._end]


class ExitReader(PartReader):
    """The adapter's session, which has read the text once."""

    session_at = _SessionAt

    def __init__(self, part: Any, target: Target, room: int) -> None:
        """Make `room` for what may be written after the text."""
        self.part, self._target, self._states = part, target, target.states((part.layer,))
        # With steps as long as the text, not even a rolling cache overwrites what is asked for again.
        self.session = part.open(len(target.text) + room, max(ROWS, len(target.text)))
        for states in torch.split(self._states, ROWS):
            self.session.read(states)

    def begin(self, positions: Sequence[int]) -> None:
        """Forget what follows the first of these positions, which are in front of all earlier ones."""
        self.session.rewind(min(positions) - 1)
        self._target.hold(min(positions) - 1)

    def read(self, questions: Sequence[_States]) -> list[torch.Tensor]:
        """Let the adapter read hidden states; return its own for the fresh ones."""
        start, answers = self.session.length, dict[int, torch.Tensor]()
        for group in passes(start, [(each.length, len(each.stored) + len(each.fresh)) for each in questions], ROWS):
            end = max(questions[each].length for each in group)
            parents, states, ends = [*range(-1, end - start - 1)], [self._states[start:end]], list[int]()
            for each in group:
                asked, first = questions[each], len(parents)
                last = first + len(asked.stored) + len(asked.fresh)
                parents += [asked.length - start - 1, *range(first, last - 1)]
                states += [asked.stored, asked.fresh]
                ends.append(last)
            rows = self.session.look(torch.cat(states), tuple(parents))
            for each, last in zip(group, ends, strict=True):
                answers[each] = rows[last - len(questions[each].fresh) : last]
        return [answers[each] for each in range(len(questions))]
