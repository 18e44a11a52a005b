"""A pool with one idle session for each model or drafter, so that a run finds caches allocated and passes recorded."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Protocol, TypeVar

_ROUND = 512  # capacities are rounded up to a multiple, so that prompts of similar length use the same cache


class PooledSession(Protocol):
    """A session, as the pool sees it."""

    capacity: int  # tokens that can be stored
    largest_step: int  # rows that fit into one reading

    def rewind(self, length: int) -> None:
        """Forget stored tokens after `length`."""


SessionT = TypeVar("SessionT", bound=PooledSession, covariant=True)


class SessionOwner(Protocol[SessionT]):
    """A model or a drafter, which opens sessions."""

    def open(self, capacity: int, largest_step: int) -> SessionT:
        """Open a session for texts of up to `capacity` tokens."""
        ...


class SessionPool:
    """Hands out sessions, each to one run at a time. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[int, Any] = {}  # by identity of the owner

    def acquire(self, owner: SessionOwner[SessionT], capacity: int, largest_step: int) -> SessionT:
        """Return a session for texts of at least `capacity` tokens and steps of at least `largest_step` rows."""
        with self._lock:
            idle: SessionT | None = self._idle.pop(id(owner), None)
        if idle is not None and idle.capacity >= capacity and idle.largest_step >= largest_step:
            return idle
        del idle  # free the old cache before the new one is allocated
        return owner.open(-(-capacity // _ROUND) * _ROUND, largest_step)

    def lend(self, borrower: object, owner: SessionOwner[SessionT], capacity: int, largest_step: int) -> SessionT:
        """Acquire an empty session that returns to the pool when nothing refers to the borrower any more."""
        session = self.acquire(owner, capacity, largest_step)
        session.rewind(0)
        weakref.finalize(borrower, self.release, owner, session).atexit = False
        return session

    def release(self, owner: SessionOwner[PooledSession], session: PooledSession) -> None:
        """Return a session to the pool; of two idle sessions of an owner the larger one stays."""
        with self._lock:
            idle = self._idle.get(id(owner))
            if idle is None or idle.capacity <= session.capacity:
                self._idle[id(owner)] = session
