"""An early exit that drafts behind many places of a text in one pass: the target's first layers, and an adapter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .hanging import parted
from .part_at_place import OutputLayer, PartAt
from .together import ask

if TYPE_CHECKING:
    from .target import Target

_ROWS = 512  # of a pass


class _Rows(NamedTuple):
    """Hidden states that the adapter is to read one behind the other, behind a part of the text."""

    length: int  # of the part
    stored: torch.Tensor  # (n, H) those that it has read before
    fresh: torch.Tensor  # (m, H)


class ExitReader:
    """The adapter's session, which has read the text once."""

    def __init__(self, part: Any, target: Target, room: int) -> None:
        """`room` is for what may be written behind the text."""
        self._part, self._target, self._states = part, target, target.states((part.layer,))
        # With steps as long as the text, not even a rolling cache overwrites what is asked for again.
        self.session = part.open(len(target.text) + room, max(_ROWS, len(target.text)))
        self.logits = OutputLayer(self.session)
        for states in torch.split(self._states, _ROWS):
            self.session.read(states)

    def begin(self, places: Sequence[int]) -> None:
        """Forget what stands behind the first of these places, which lie in front of earlier ones."""
        self.session.rewind(min(places) - 1)
        self._target.stand(min(places) - 1)

    def at(self, place: int) -> PartAt:
        """The part as a run meets it whose text is read up to that place."""
        return PartAt(self._part, partial(_SessionAt, self, place - 1))

    def answer(self, questions: Sequence[_Rows]) -> list[torch.Tensor]:
        """Read hidden states; what the output layer takes of each."""
        start, found = self.session.length, dict[int, torch.Tensor]()
        for part in parted(start, [(each.length, len(each.stored) + len(each.fresh)) for each in questions], _ROWS):
            end = max(questions[one].length for one in part)
            parents, rows = [*range(-1, end - start - 1)], [self._states[start:end]]
            ends = list[int]()
            for one in part:
                own = [questions[one].stored, questions[one].fresh]
                first, count = len(parents), sum(map(len, own))
                parents += [questions[one].length - start - 1, *range(first, first + count - 1)]
                rows += own
                ends.append(len(parents))
            made = self.session.look(torch.cat(rows), tuple(parents))
            for one, last in zip(part, ends, strict=True):
                found[one] = made[last - len(questions[one].fresh) : last]
        return [found[one] for one in range(len(questions))]


class _SessionAt:
    """The adapter's session as a run meets it at one place."""

    def __init__(self, reader: ExitReader, length: int, largest_step: int) -> None:
        self.largest_step = largest_step
        self._reader, self._start = reader, length
        self._stored: torch.Tensor | None = None  # (n, H) states that were read behind the text

    @property
    def length(self) -> int:
        """Tokens read."""
        return self._start + (0 if self._stored is None else len(self._stored))

    def read(self, hidden: torch.Tensor) -> torch.Tensor:  # (n, H) -> (n, H)
        """Read the next tokens' hidden states behind the exit layer."""
        stored = hidden[:0] if self._stored is None else self._stored
        self._stored = torch.cat((stored, hidden))
        return ask(self._reader, _Rows(self._start, stored, hidden))

    def logits(self, rows: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R, n)
        """What follows the tokens of rows, over the tokens that may be drafted."""
        return ask(self._reader.logits, rows)

    def rewind(self, length: int) -> None:
        """Forget what stands behind `length`, which is not inside of the text."""
        assert self._start <= length <= self.length
        self._stored = None if self._stored is None else self._stored[: length - self._start]
