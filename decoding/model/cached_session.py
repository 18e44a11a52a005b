"""The base classes of sessions: with a cache, and with the states that enter tapped layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from . import quiet
from .cache import Cache
from .upload import upload


def requested(rows: torch.Tensor, skip: int, only: Sequence[int] | None) -> torch.Tensor:
    """Select the rows that `Session.read` answers for."""
    if only is not None and len(only) < len(rows):
        return rows.index_select(0, upload(torch.tensor(only, dtype=torch.long), rows.device))
    return rows[skip:] if skip and only is None else rows


class TappedSession:
    """Keeps the states of a text's stored tokens that enter some layers, until a drafter takes them."""

    seam: int | None = None

    def __init__(self, capacity: int, largest_step: int) -> None:
        self.capacity, self.largest_step = capacity, largest_step
        self._tapped: tuple[int, ...] = ()
        self._entering = torch.empty(0, 0)  # (T, layers * H), of all rows of the last reading
        self._stored: list[torch.Tensor] = []

    def tap(self, *layers: int) -> None:
        """Record the hidden states entering these layers for every stored token; without layers, stop recording."""
        self._tapped, self._stored = layers, []

    def tapped(self) -> torch.Tensor:  # (n, layers * H)
        """Return the states recorded since the last call, of the last n stored tokens. A reset deletes them."""
        states, self._stored = self._stored, []
        if len(states) == 1:
            return states[0]
        return torch.cat(states) if states else self._entering[:0]

    def _note(self, states: Sequence[torch.Tensor]) -> None:  # each (T, H)
        """Keep the states that entered the tapped layers in a reading."""
        if states:
            self._entering = torch.cat([*states], 1) if len(states) > 1 else states[0]

    def commit(self, rows: Sequence[int]) -> None:
        """Store those rows of the last reading, a path from its root; forget the others."""
        if not self._tapped:
            return
        if [*rows] == [*range(len(rows))]:
            self._stored.append(self._entering[: len(rows)])
        else:
            path = upload(torch.tensor(rows, dtype=torch.long), self._entering.device)
            self._stored.append(quiet.rows(self._entering, path))

    def reset(self, prompt_length: int) -> None:
        """Start a new text."""
        self._stored.clear()


class CachedSession(TappedSession):
    """A text whose keys and values are in a cache."""

    def __init__(self, cache: Cache) -> None:
        super().__init__(cache.capacity, cache.largest_step)
        self.cache = cache

    @property
    def length(self) -> int:
        """Return the number of stored tokens."""
        return self.cache.length

    def commit(self, rows: Sequence[int]) -> None:
        """Store those rows of the last reading, a path from its root; forget the others."""
        self.cache.commit(rows)
        super().commit(rows)

    def rewind(self, length: int) -> None:
        """Forget stored tokens after `length`: at most `largest_step` of them."""
        self.cache.rewind(length)

    def keep(self, length: int, prompt_length: int) -> bool:
        """Start a text with the first `length` stored tokens; False if the cache has lost keys that they see."""
        if not self.cache.holds(length):
            return False
        self.cache.rewind(length)
        self._stored.clear()
        return True

    def reset(self, prompt_length: int) -> None:
        """Start a new text."""
        self.cache.reset()
        super().reset(prompt_length)
