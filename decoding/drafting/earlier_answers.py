"""The answers that earlier runs wrote, in one suffix automaton: what a method remembers of a user."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from threading import RLock
from typing import Any

from .suffix_automaton import Entry, SuffixAutomaton

Answer = list[int]


class EarlierAnswers:
    """At most `most` answers of at most `largest` tokens together; the oldest ones make room, each of them whole.

    An answer is added once a later one begins. Runs that go on at the same time can share them.
    """

    def __init__(self, depth: int, most: int, largest: int = 16_384) -> None:
        self._depth, self._most, self._largest = depth, most, largest
        self._held = deque[Answer]()
        self._automaton = SuffixAutomaton(depth)
        self._entries = list[Entry]()  # of the answers held, in the same order
        self._lock = RLock()

    def begin(self) -> tuple[int, SuffixAutomaton, Answer]:
        """Start another answer: how many earlier ones there are, what they hold so far, and the list to write to."""
        with self._lock:
            self._evict()
            for entry, answer in zip(self._entries, self._held, strict=True):
                entry.update(answer)
            count, answer = len(self._held), Answer()
            self._held.append(answer)
            self._entries.append(Entry(self._automaton))
            return count, self._automaton, answer

    def answers(self) -> list[Answer]:
        """All answers held, the oldest first."""
        with self._lock:
            return [*self._held]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While no other run adds answers."""
        with self._lock:
            yield

    def _evict(self) -> None:
        """Make room for one answer more. Runs that go on keep the automaton that they began with."""
        size, kept = sum(map(len, self._held)), len(self._held)
        if kept <= self._most and size <= self._largest:
            return
        # Half of them at once: an automaton forgets nothing, so that it is built anew from those that stay.
        while self._held and (len(self._held) > max(1, self._most // 2) or size > self._largest // 2):
            size -= len(self._held.popleft())
        self._automaton = SuffixAutomaton(self._depth)
        self._entries = [Entry(self._automaton) for _ in self._held]


def remembered(memory: MutableMapping[str, Any], depth: int, most: int) -> EarlierAnswers:
    """The answers that earlier runs with the same sizes left in `memory`; those of other sizes give way."""
    name = f"answers depth={depth} most={most}"
    held: EarlierAnswers | None = memory.get(name)
    if held is None:
        memory.clear()
        held = memory[name] = EarlierAnswers(depth, most)
    return held
