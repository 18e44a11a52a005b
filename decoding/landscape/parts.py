"""The parts of a method that read the text along with the target: each reads it once for all places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..parts.base import Part


def read_once(parts: Mapping[str, Part], length: int, room: int) -> dict[str, Any]:
    """The parts by name, where those that are opened for a text are opened once for one of `length` tokens.

    `room` is for what may be written behind it. Places are to be asked for from the last on.
    """
    return {name: _OpenedOnce(part, length, room) if hasattr(part, "open") else part for name, part in parts.items()}


class _OpenedOnce:
    """A part whose session stays open from place to place."""

    def __init__(self, part: Any, length: int, room: int) -> None:
        self._part, self._length, self._room = part, length, room
        self._session: _Rewound | None = None

    def open(self, capacity: int, largest_step: int) -> _Rewound:
        """The session, with what it has read at the place before."""
        if self._session is None:
            # With steps as long as the text, not even a rolling cache overwrites what is asked for again.
            rows = max(largest_step, self._length)
            self._session = _Rewound(self._part.open(max(capacity, self._length + self._room), rows))
        return self._session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


class _Rewound:
    """A session that is rewound by one row more than is asked for: what it says behind the last one is gone."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def rewind(self, length: int) -> None:
        """Forget what stands behind `length`, and the row in front of it."""
        self._session.rewind(max(0, length - 1))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)
