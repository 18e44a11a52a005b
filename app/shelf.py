"""A bounded place for things of many visitors, on which nobody can take the room of all others.

Each client has a share. Whoever puts something beyond their share loses their own oldest thing; where the whole is
full, whoever holds most does.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

_Thing = TypeVar("_Thing")


@dataclass(frozen=True, slots=True)
class Bound:
    """How much there may be."""

    things: int
    weight: int = 2**63


@dataclass(slots=True)
class _Kept(Generic[_Thing]):
    client: str
    thing: _Thing
    weight: int


class Shelf(Generic[_Thing]):
    """Things by key; what was not used for longest goes first. Safe from several threads."""

    def __init__(self, whole: Bound, each: Bound) -> None:
        self._whole, self._each = whole, each
        self._kept: OrderedDict[str, _Kept[_Thing]] = OrderedDict()
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: str) -> bool:
        return key in self._kept

    def put(self, client: str, key: str, thing: _Thing, weight: int = 0) -> dict[str, str]:
        """Keep a thing; what made room for it, and whose it was: the client's own, or of whoever holds more."""
        with self._lock:
            self._kept[key] = _Kept(client, thing, weight)
            self._kept.move_to_end(key)
            gone = dict[str, str]()
            while (victim := self._victim(client, key)) is not None:
                gone[victim] = self._kept.pop(victim).client
            return gone

    def get(self, key: str) -> _Thing | None:
        """A thing, which counts as used now."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
            return kept.thing

    def change(self, key: str, thing: _Thing) -> None:
        """Put something else in a thing's place, if it is still there."""
        with self._lock:
            if key in self._kept:
                self._kept[key].thing = thing

    def pop(self, key: str) -> _Thing | None:
        """Take a thing away."""
        with self._lock:
            kept = self._kept.pop(key, None)
            return None if kept is None else kept.thing

    def owner(self, key: str) -> str | None:
        """Whose a thing is."""
        kept = self._kept.get(key)
        return None if kept is None else kept.client

    def items(self) -> list[tuple[str, _Thing]]:
        """All things by their keys."""
        with self._lock:
            return [(key, kept.thing) for key, kept in self._kept.items()]

    def _victim(self, client: str, newest: str) -> str | None:
        """What has to go next; the newest thing stays in any case."""
        if self._over(self._each, client):
            return self._oldest(client, newest)
        if self._over(self._whole):
            most = max({kept.client for kept in self._kept.values()}, key=self._holding)
            return self._oldest(client if self._holding(client) >= self._holding(most) else most, newest)
        return None

    def _over(self, bound: Bound, client: str | None = None) -> bool:
        things, weight = self._holding(client)
        return things > bound.things or weight > bound.weight

    def _holding(self, client: str | None) -> tuple[int, int]:
        weights = [kept.weight for kept in self._kept.values() if client in (None, kept.client)]
        return len(weights), sum(weights)

    def _oldest(self, client: str, newest: str) -> str | None:
        return next((key for key, kept in self._kept.items() if kept.client == client and key != newest), None)
