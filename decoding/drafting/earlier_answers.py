"""The answers that earlier runs wrote, in one suffix automaton: what a method remembers of a user."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from ..types import JSON
from .shared import Shared
from .suffix_automaton import Ending, GrowingText, SuffixAutomaton

_OCCURRENCES, _FOLLOWS = 4, 8  # of an ending that are listed, and tokens after each


class EarlierAnswers(Shared):
    """At most `most` answers of at most `largest` tokens together; the oldest ones make room, each of them whole.

    An answer is added once a later one begins.
    """

    def __init__(self, depth: int, most: int, largest: int = 16_384, *, sorts: bool = False) -> None:
        super().__init__()
        self._depth, self._most, self._largest, self._sorts = depth, most, largest, sorts
        self._held = deque[list[int]]()
        self._automaton = SuffixAutomaton(depth, sorts=sorts)
        self._entries = list[GrowingText]()  # of the answers held, in the same order

    def begin(self) -> tuple[int, SuffixAutomaton, list[int]]:
        """Start another answer; return the number of earlier ones, their automaton, and the list to write to."""
        with self._lock:
            self._evict()
            for entry, answer in zip(self._entries, self._held, strict=True):
                entry.update(answer)
            count, answer = len(self._held), list[int]()
            self._held.append(answer)
            self._entries.append(GrowingText(self._automaton))
            return count, self._automaton, answer

    def answers(self) -> list[list[int]]:
        """List all answers held, the oldest first."""
        with self._lock:
            return [*self._held]

    def reading(self) -> AbstractContextManager[object]:
        """Keep other runs from adding answers."""
        return self._lock

    def _evict(self) -> None:
        """Make room for one more answer. Current runs keep the automaton that they began with."""
        size, kept = sum(map(len, self._held)), len(self._held)
        if kept <= self._most and size <= self._largest:
            return
        # Half of them at once: an automaton forgets nothing, so it is rebuilt from those that stay.
        while self._held and (len(self._held) > max(1, self._most // 2) or size > self._largest // 2):
            size -= len(self._held.popleft())
        self._automaton = SuffixAutomaton(self._depth, sorts=self._sorts)
        self._entries = [GrowingText(self._automaton) for _ in self._held]


class NextAnswer:
    """The answer that a run writes, and where the text's ending is in those before it."""

    def __init__(self, earlier: EarlierAnswers, text: Sequence[int]) -> None:
        self.before, self.automaton, self.tokens = earlier.begin()
        self.ending = Ending()
        self._earlier, self._read = earlier, max(0, len(text) - self.automaton.depth)

    def follow(self, text: Sequence[int]) -> None:
        """Find the ending of a text that has grown."""
        for token in text[self._read :]:
            self.automaton.advance(self.ending, token)
        self._read = len(text)

    def others(self) -> dict[int, Sequence[int]]:
        """Number the answers held besides this one, the latest first."""
        others = (answer for answer in reversed(self._earlier.answers()) if answer is not self.tokens)
        return dict(enumerate(others, start=1))


def occurrences(texts: Mapping[int, Sequence[int]], ending: Sequence[int]) -> list[dict[str, JSON]]:
    """List the latest positions after an ending in numbered texts, first one for each token that came next."""
    latest, others = dict[int, dict[str, JSON]](), list[dict[str, JSON]]()
    for number, text in texts.items():
        for place in range(len(text) - 1, len(ending) - 1, -1):
            if text[place - 1] != ending[-1] or [*text[place - len(ending) : place]] != [*ending]:
                continue
            occurrence = {"answer": number, "place": place, "follows": text[place : place + _FOLLOWS]}
            if text[place] in latest:
                others.append(occurrence)
            else:
                latest[text[place]] = occurrence
            if len(latest) == _OCCURRENCES:  # earlier answers may be long, and no earlier position is listed
                return [*latest.values()]
    return [*latest.values(), *others][:_OCCURRENCES]
