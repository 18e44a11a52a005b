"""Who may use the engines now: one at a time, in the order of coming, and everybody sees their place."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from decoding.errors import SpecscopeError


class FullError(SpecscopeError):
    """So many wait already that one more is sent away."""


class Line:
    """First come, first served."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._waiting: list[Ticket] = []  # the first of them has the engine
        self._moved = threading.Condition()

    def __len__(self) -> int:
        with self._moved:
            return len(self._waiting)

    def join(self) -> Ticket:
        """A place at the end; leave it in every case."""
        with self._moved:
            if len(self._waiting) > self._longest:
                raise FullError(f"too many runs are waiting already ({self._longest}): try again in a minute")
            ticket = Ticket(self)
            self._waiting.append(ticket)
            return ticket

    def place(self, ticket: Ticket, known: int, timeout: float) -> int:
        """How many stand in front, waiting up to `timeout` seconds for it to be fewer than `known`, or none."""
        with self._moved:
            self._moved.wait_for(lambda: self._waiting.index(ticket) in {0, *range(known)}, timeout)
            return self._waiting.index(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Make room; a second time does nothing."""
        with self._moved:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                self._moved.notify_all()


class Ticket:
    """A place in the line; as a context it is left at the end."""

    def __init__(self, line: Line) -> None:
        self._line, self._known = line, 0

    def wait(self, timeout: float) -> int:
        """How many stand in front, at once when it changes or after `timeout` seconds: with none, the turn has come."""
        self._known = self._line.place(self, self._known, timeout)
        return self._known

    def leave(self) -> None:
        """Make room for the next."""
        self._line.leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
