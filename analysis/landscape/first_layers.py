"""The target's first layers, run for many places of a text in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .hanging import HangingTree, hang, parted

if TYPE_CHECKING:
    from decoding.model.session import ExitSession

_ROWS = 512  # of a pass


class FirstLayers:
    """The target's layers in front of one of them."""

    def __init__(self, text: Sequence[int], session: ExitSession, layer: int) -> None:
        """The session stands in front of all places that are asked for together."""
        self._text, self._session, self._layer = text, session, layer

    def answer(self, questions: Sequence[HangingTree]) -> list[torch.Tensor]:
        """Run trees through them; the hidden states of each."""
        start, found = self._session.length, dict[int, torch.Tensor]()
        for part in parted(start, [(asked.length, asked.rows) for asked in questions], _ROWS):
            made = hang(self._text, start, [questions[one] for one in part])
            hidden = self._session.enter(made.tokens, self._layer, parents=made.parents)
            found |= {one: hidden[rows] for one, rows in zip(part, made.rows, strict=True)}
        return [found[one] for one in range(len(questions))]
