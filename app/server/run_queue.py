"""A fair queue: it serves one ticket at a time, round-robin over clients, and reports the position of each ticket."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from typing import Self

from decoding.errors import SpecscopeError

_REMEMBERED_CLIENTS = 256


class FullError(SpecscopeError):
    """The queue is full, as a whole or for one client."""


class RunQueue:
    """Serves clients round-robin; tickets of the same client are served first in, first out."""

    def __init__(self, capacity: int, capacity_each: int | None = None) -> None:
        """`capacity` and `capacity_each` (of one client) count waiting tickets; the one being served comes on top."""
        self._capacity = capacity
        self._capacity_each = capacity if capacity_each is None else capacity_each
        self._tickets: list[Ticket] = []  # in the order of arrival, the one being served among them
        self._serving: Ticket | None = None
        self._served_at: OrderedDict[str, int] = OrderedDict()  # by client: number of its last turn
        self._turns = 0
        self._changed = threading.Condition()

    def __len__(self) -> int:
        with self._changed:
            return len(self._tickets)

    @property
    def serving(self) -> bool:
        """Whether a ticket is being served."""
        return self._serving is not None

    @property
    def waiting(self) -> int:
        """The number of waiting tickets."""
        with self._changed:
            return len(self._tickets) - self.serving

    def join(self, client: str = "") -> Ticket:
        """Append a ticket, which the caller must leave in every case; raises FullError."""
        with self._changed:
            if len(self._tickets) > self._capacity:
                raise FullError(f"too many runs are waiting already ({self._capacity}): try again in a minute")
            if sum(ticket.client == client for ticket in self._tickets) > self._capacity_each:
                raise FullError(
                    f"too many runs from your address are waiting already ({self._capacity_each}): "
                    "try again in a minute"
                )
            ticket = Ticket(self, client)
            self._tickets.append(ticket)
            self._serve_next()
            return ticket

    def wait(self, ticket: Ticket, last: int, timeout: float) -> int:
        """Wait up to `timeout` seconds until the ticket's position is 0 or less than `last`; returns the position."""
        with self._changed:
            self._changed.wait_for(lambda: self._order().index(ticket) in {0, *range(last)}, timeout)
            return self._order().index(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Remove a ticket; a second call does nothing."""
        with self._changed:
            if ticket in self._tickets:
                self._tickets.remove(ticket)
                if self._serving is ticket:
                    self._serving = None
                self._serve_next()
                self._changed.notify_all()

    def _serve_next(self) -> None:
        """Start to serve the first waiting ticket, if none is being served."""
        if self._serving is not None or not self._tickets:
            return
        self._serving = self._order()[0]
        self._turns += 1
        self._served_at[self._serving.client] = self._turns
        self._served_at.move_to_end(self._serving.client)
        while len(self._served_at) > _REMEMBERED_CLIENTS:
            self._served_at.popitem(last=False)

    def _order(self) -> list[Ticket]:
        """Return the ticket being served, then the first ticket of each client, then the second of each, and so on.

        Within a round the client that was served longest ago comes first.
        """
        rounds, keys = Counter[str](), dict[Ticket, tuple[int, int, int]]()
        for arrival, ticket in enumerate(self._tickets):
            if ticket is self._serving:
                keys[ticket] = (-1, 0, 0)
                continue
            keys[ticket] = (rounds[ticket.client], self._served_at.get(ticket.client, 0), arrival)
            rounds[ticket.client] += 1
        return sorted(self._tickets, key=keys.__getitem__)


class Ticket:
    """A place in a RunQueue. As a context manager it leaves the queue at the end of the block."""

    def __init__(self, queue: RunQueue, client: str) -> None:
        self._queue, self.client, self._position = queue, client, 0

    def wait(self, timeout: float) -> int:
        """Wait up to `timeout` seconds for the position to change; returns it. At position 0 the ticket is served."""
        self._position = self._queue.wait(self, self._position, timeout)
        return self._position

    def leave(self) -> None:
        """Leave the queue."""
        self._queue.leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()
