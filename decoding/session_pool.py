"""A pool with one idle session for each model, so that a cache is not allocated anew for each run."""

from __future__ import annotations

import threading

from .model.session import Model, Session

_ROUND = 512  # capacities are rounded up to a multiple, so that prompts of similar length use the same cache


class SessionPool:
    """Hands out sessions, each to one run at a time. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[int, Session] = {}  # by identity of the model

    def acquire(self, model: Model, capacity: int, largest_step: int) -> Session:
        """Return a session for texts of at least `capacity` tokens and steps of at least `largest_step` rows."""
        with self._lock:
            idle = self._idle.pop(id(model), None)
        if idle is not None and idle.capacity >= capacity and idle.largest_step >= largest_step:
            return idle
        del idle  # free the old cache before the new one is allocated
        return model.open(-(-capacity // _ROUND) * _ROUND, largest_step)

    def release(self, model: Model, session: Session) -> None:
        """Return a session to the pool; of two idle sessions of a model the larger one stays."""
        with self._lock:
            idle = self._idle.get(id(model))
            if idle is None or idle.capacity <= session.capacity:
                self._idle[id(model)] = session
