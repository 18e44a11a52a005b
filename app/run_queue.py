"""The run queue: one run at a time, clients take turns, and everybody sees their position."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from types import TracebackType
from typing import Self

from decoding.errors import SpecscopeError

_REMEMBERED = 256  # clients


class FullError(SpecscopeError):
    """So many wait already that one more is sent away."""


class Line:
    """Round-robin over clients; first come, first served among the runs of one client."""

    def __init__(self, longest: int, each: int | None = None) -> None:
        self._longest, self._each = longest, longest if each is None else each
        self._waiting: list[Ticket] = []  # in the order of coming; the one that has the engine among them
        self._serving: Ticket | None = None
        self._served: OrderedDict[str, int] = OrderedDict()  # by client: when it last had the engine, as a count
        self._turns = 0
        self._moved = threading.Condition()

    def __len__(self) -> int:
        with self._moved:
            return len(self._waiting)

    def join(self, client: str = "") -> Ticket:
        """A place; leave it in every case."""
        with self._moved:
            if len(self._waiting) > self._longest:
                raise FullError(f"too many runs are waiting already ({self._longest}): try again in a minute")
            if sum(ticket.client == client for ticket in self._waiting) > self._each:
                raise FullError(
                    f"too many runs from your address are waiting already ({self._each}): try again in a minute"
                )
            ticket = Ticket(self, client)
            self._waiting.append(ticket)
            self._call()
            return ticket

    def place(self, ticket: Ticket, known: int, timeout: float) -> int:
        """How many stand in front, waiting up to `timeout` seconds for it to be fewer than `known`, or none."""
        with self._moved:
            self._moved.wait_for(lambda: self._order().index(ticket) in {0, *range(known)}, timeout)
            return self._order().index(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Make room; a second time does nothing."""
        with self._moved:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                if self._serving is ticket:
                    self._serving = None
                self._call()
                self._moved.notify_all()

    def _call(self) -> None:
        """Give the free engine to the first in the queue."""
        if self._serving is not None or not self._waiting:
            return
        self._serving = self._order()[0]
        self._turns += 1
        self._served[self._serving.client] = self._turns
        self._served.move_to_end(self._serving.client)
        while len(self._served) > _REMEMBERED:
            self._served.popitem(last=False)

    def _order(self) -> list[Ticket]:
        """The running one, then the first run of each client, then the second of each, and so on.

        Within a round the client that was served longest ago comes first.
        """
        rounds, places = Counter[str](), dict[Ticket, tuple[int, int, int]]()
        for number, ticket in enumerate(self._waiting):
            if ticket is self._serving:
                places[ticket] = (-1, 0, 0)
                continue
            places[ticket] = (rounds[ticket.client], self._served.get(ticket.client, 0), number)
            rounds[ticket.client] += 1
        return sorted(self._waiting, key=places.__getitem__)


class Ticket:
    """A place in the line; as a context it is left at the end."""

    def __init__(self, line: Line, client: str) -> None:
        self._line, self.client, self._known = line, client, 0

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
