"""A part that reads along, as runs meet it that begin at places of one text: its session is one for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class PartAt:
    """The part, opened for one place."""

    def __init__(self, part: Any, session: Callable[[int], Any]) -> None:
        """`session` makes the one for the place, of the largest step."""
        self._part, self._session = part, session

    def open(self, capacity: int, largest_step: int) -> Any:
        """A session that has read the text there."""
        return self._session(largest_step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


class OutputLayer:
    """The part's output layer."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def answer(self, questions: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """What follows rows."""
        return torch.split(self._session.logits(torch.cat([*questions])), [len(rows) for rows in questions])
