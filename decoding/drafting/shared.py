"""What runs that go on at the same time can share: n-gram pools, tables, earlier answers."""

from __future__ import annotations

from copy import deepcopy
from threading import RLock
from typing import Any, Self


class Shared:
    """Has a lock; a copy has a lock of its own, and is made while nobody writes."""

    def __init__(self) -> None:
        self._lock = RLock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = memo[id(self)] = object.__new__(type(self))
        with self._lock:
            held = {name: deepcopy(each, memo) for name, each in vars(self).items() if name != "_lock"}
        vars(copied).update(held, _lock=RLock())
        return copied
