"""The n-gram pool: the n-grams that followed each token in a run, to be guessed again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Literal

from .shared import Shared

Outcome = Literal["added", "refreshed", "evicted-oldest"]
NEW: tuple[Outcome, ...] = ("added", "evicted-oldest")  # outcomes of an n-gram that the pool did not hold


class NgramPool(Shared):
    """For every token the last `G` distinct n-grams that followed it, the least recently inserted one first.

    `largest` bounds the n-grams of all tokens together: beyond it, the token whose n-grams have gone longest
    without an insertion loses all of them. No run, however long or hostile, can make the pool outgrow memory.
    """

    def __init__(self, G: int, largest: int = 65_536) -> None:
        assert 0 <= G <= largest
        super().__init__()
        self.entries = 0  # n-grams of all tokens
        self._G, self._largest = G, largest
        # Ordered dictionaries serve as least-recently-inserted queues with a constant-time membership test.
        self._ngrams: OrderedDict[int, OrderedDict[tuple[int, ...], None]] = OrderedDict()

    @property
    def keys(self) -> int:
        """Count the tokens that have an n-gram."""
        return len(self._ngrams)

    def guesses(self, key: int) -> tuple[tuple[int, ...], ...]:
        """List the n-grams that followed `key`, the least recently inserted one first."""
        with self._lock:
            return tuple(self._ngrams.get(key, ()))

    def insert(self, key: int, ngram: tuple[int, ...]) -> Outcome | None:
        """Insert an n-gram that followed `key`; return None if G is 0, so that the pool holds nothing."""
        if self._G == 0:
            return None
        with self._lock:
            ngrams = self._ngrams.setdefault(key, OrderedDict())
            self._ngrams.move_to_end(key)
            if ngram in ngrams:
                ngrams.move_to_end(ngram)
                return "refreshed"
            ngrams[ngram] = None
            if len(ngrams) > self._G:
                ngrams.popitem(last=False)
                return "evicted-oldest"
            self.entries += 1
            if self.entries > self._largest:
                _, dropped = self._ngrams.popitem(last=False)
                self.entries -= len(dropped)
            return "added"

    def insert_text(self, text: Sequence[int], N: int) -> int:
        """Insert every N-gram of a text, first to last; return how many were new."""
        starts = range(len(text) - N + 1)
        return sum(self.insert(text[i], tuple(text[i + 1 : i + N])) in NEW for i in starts)

    def replace(self, key: int, old: Iterable[tuple[int, ...]], new: Iterable[tuple[int, ...]]) -> None:
        """Drop those n-grams of `key` that are in `old`, and insert `new` one after the other."""
        with self._lock:
            ngrams = self._ngrams.get(key, OrderedDict())
            for ngram in old:
                if ngram in ngrams:
                    del ngrams[ngram]
                    self.entries -= 1
            if not ngrams:
                self._ngrams.pop(key, None)
            for ngram in new:
                self.insert(key, ngram)
