"""The hidden states with which a session's tokens enter some layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from . import quiet
from .upload import upload


class Taps:
    """Holds these states for stored tokens until they are asked for."""

    def __init__(self) -> None:
        self.layers: tuple[int, ...] = ()
        self._entering = torch.empty(0, 0)  # (T, layers * H), of all rows of the last reading
        self._stored: list[torch.Tensor] = []

    def choose(self, layers: tuple[int, ...]) -> None:
        """From now on hold the states that enter these layers; none: stop."""
        self.layers, self._stored = layers, []

    def note(self, states: Sequence[torch.Tensor]) -> None:  # each (T, H)
        """Take over what a reading's rows had in front of the layers."""
        if states:
            self._entering = torch.cat([*states], 1) if len(states) > 1 else states[0]

    def store(self, rows: Sequence[int]) -> None:
        """Hold the states of the rows that are stored."""
        if not self.layers:
            return
        if [*rows] == [*range(len(rows))]:
            self._stored.append(self._entering[: len(rows)])
        else:
            taken = upload(torch.tensor(rows, dtype=torch.long), self._entering.device)
            self._stored.append(quiet.rows(self._entering, taken))

    def take(self) -> torch.Tensor:  # (n, layers * H)
        """The states of the tokens stored since the last call."""
        held, self._stored = self._stored, []
        if len(held) == 1:
            return held[0]
        return torch.cat(held) if held else self._entering[:0]

    def clear(self) -> None:
        """Forget them: another text begins."""
        self._stored.clear()
