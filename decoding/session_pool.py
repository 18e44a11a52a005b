"""Keeps one idle session per model between runs, so that a cache is allocated once and not once a run."""

from __future__ import annotations

import threading

from .model.session import Model, Session

_ROUND = 512  # capacities are rounded up to this, so that prompts of similar length share a cache


class Lender:
    """Lends sessions; safe to use from several threads, each run holding its own session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[int, Session] = {}  # by identity of the model

    def borrow(self, model: Model, capacity: int, largest_step: int) -> Session:
        """A session for texts of at least `capacity` tokens and steps of at least `largest_step` rows."""
        with self._lock:
            idle = self._idle.pop(id(model), None)
        if idle is not None and idle.capacity >= capacity and idle.largest_step >= largest_step:
            return idle
        del idle  # free the old cache before the new one is allocated
        return model.open(-(-capacity // _ROUND) * _ROUND, largest_step)

    def give_back(self, model: Model, session: Session) -> None:
        """Take a session back; of two idle ones the larger stays."""
        with self._lock:
            idle = self._idle.get(id(model))
            if idle is None or idle.capacity <= session.capacity:
                self._idle[id(model)] = session
