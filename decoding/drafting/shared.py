"""The base of what concurrent runs can share: n-gram pools, tables, earlier answers."""

from __future__ import annotations

from copy import deepcopy
from threading import RLock
from typing import Any, Self


class Shared:
    """Holds a lock. A copy gets a new lock, and is made while no run writes."""

    def __init__(self) -> None:
        self._lock = RLock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = memo[id(self)] = object.__new__(type(self))
        with self._lock:
            held = {name: deepcopy(each, memo) for name, each in vars(self).items() if name != "_lock"}
        vars(copied).update(held, _lock=RLock())
        return copied
