"""An LRU cache with a quota for each client, so that no client can evict the entries of all others.

A client over its quota evicts its own oldest entry. If the whole cache is full, the client with the most entries does.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Quota:
    """How many entries there may be, and their total weight."""

    entries: int
    weight: int = 2**63


@dataclass(slots=True)
class _Entry(Generic[_Value]):
    client: str
    value: _Value
    weight: int


class QuotaCache(Generic[_Value]):
    """Entries by key, least recently used first out. Thread-safe."""

    def __init__(self, whole: Quota, each: Quota) -> None:
        self._whole, self._each = whole, each
        self._entries: OrderedDict[str, _Entry[_Value]] = OrderedDict()
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def put(self, client: str, key: str, value: _Value, weight: int = 0) -> dict[str, str]:
        """Add an entry; returns the evicted keys with their clients."""
        with self._lock:
            self._entries[key] = _Entry(client, value, weight)
            self._entries.move_to_end(key)
            evicted = dict[str, str]()
            while (victim := self._victim(client, key)) is not None:
                evicted[victim] = self._entries.pop(victim).client
            return evicted

    def get(self, key: str) -> _Value | None:
        """Return an entry, which counts as used now."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry.value

    def change(self, key: str, value: _Value) -> None:
        """Replace the value of an entry, if it is still there."""
        with self._lock:
            if key in self._entries:
                self._entries[key].value = value

    def pop(self, key: str) -> _Value | None:
        """Remove an entry."""
        with self._lock:
            entry = self._entries.pop(key, None)
            return None if entry is None else entry.value

    def items(self) -> list[tuple[str, _Value]]:
        """Return all entries."""
        with self._lock:
            return [(key, entry.value) for key, entry in self._entries.items()]

    def _victim(self, client: str, newest: str) -> str | None:
        """Return the next key to evict; the newest entry always stays."""
        oldest = self._oldest(client, newest)
        if oldest is not None and self._over(self._each, self._holding(client)):
            return oldest
        if not self._over(self._whole, self._holding(None)):
            return None
        others = {entry.client for key, entry in self._entries.items() if key != newest}
        most = max(others, key=lambda each: (self._share(each), each == client), default=None)
        return None if most is None else self._oldest(most, newest)

    def _share(self, client: str) -> float:
        """Return how much of the whole a client holds."""
        count, weight = self._holding(client)
        return max(count / self._whole.entries, weight / self._whole.weight)

    def _holding(self, client: str | None) -> tuple[int, int]:
        weights = [entry.weight for entry in self._entries.values() if client in (None, entry.client)]
        return len(weights), sum(weights)

    def _over(self, quota: Quota, holding: tuple[int, int]) -> bool:
        count, weight = holding
        return count > quota.entries or weight > quota.weight

    def _oldest(self, client: str, newest: str) -> str | None:
        return next((key for key, entry in self._entries.items() if entry.client == client and key != newest), None)
