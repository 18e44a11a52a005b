"""The n-gram pool: what a run has seen follow each token, so that it can be guessed again."""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

Outcome = Literal["added", "refreshed", "evicted-oldest"]


class NgramPool:
    """For every token the last `G` distinct n-grams that followed it, the least recently inserted one first.

    `largest` bounds the n-grams of all tokens together: beyond it, the token whose n-grams have gone longest
    without an insertion loses all of them. No run, however long or hostile, can make the pool outgrow memory.
    """

    def __init__(self, G: int, largest: int = 65_536) -> None:
        assert 0 <= G <= largest
        self.entries = 0  # n-grams held, over all tokens
        self._G, self._largest = G, largest
        # Ordered dictionaries serve as least-recently-inserted queues with a constant-time membership test.
        self._held: OrderedDict[int, OrderedDict[tuple[int, ...], None]] = OrderedDict()

    @property
    def keys(self) -> int:
        """How many tokens have an n-gram."""
        return len(self._held)

    def guesses(self, key: int) -> tuple[tuple[int, ...], ...]:
        """The n-grams that followed `key`, the least recently inserted one first."""
        return tuple(self._held.get(key, ()))

    def insert(self, key: int, ngram: tuple[int, ...]) -> Outcome | None:
        """Note that `ngram` followed `key`; None from a pool that holds nothing because G is 0."""
        if self._G == 0:
            return None
        held = self._held.setdefault(key, OrderedDict())
        self._held.move_to_end(key)
        if ngram in held:
            held.move_to_end(ngram)
            return "refreshed"
        held[ngram] = None
        if len(held) > self._G:
            held.popitem(last=False)
            return "evicted-oldest"
        self.entries += 1
        if self.entries > self._largest:
            _, dropped = self._held.popitem(last=False)
            self.entries -= len(dropped)
        return "added"
