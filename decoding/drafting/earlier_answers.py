"""The answers of earlier runs to one user, in one suffix automaton."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from ..types import JSON
from .shared import Shared
from .suffix_automaton import Ending, GrowingText, SuffixAutomaton

_OCCURRENCES, _FOLLOWS = 4, 8  # of an ending that are listed, and tokens after each


class EarlierAnswers(Shared):
    """At most `most` answers with at most `largest` tokens in all; whole answers make room, the oldest first.

    An answer is added when the next one begins.
    """

    def __init__(self, depth: int, most: int, largest: int = 16_384, *, sorts: bool = False) -> None:
        super().__init__()
        self._depth, self._most, self._largest, self._sorts = depth, most, largest, sorts
        self._answers = deque[list[int]]()
        self._automaton = SuffixAutomaton(depth, sorts=sorts)
        self._entries = list[GrowingText]()  # of the answers, in the same order

    def begin(self) -> tuple[int, SuffixAutomaton, list[int]]:
        """Start another answer; return the number of earlier ones, their automaton, and the list to write to."""
        with self._lock:
            self._evict()
            for entry, answer in zip(self._entries, self._answers, strict=True):
                entry.update(answer)
            count, answer = len(self._answers), list[int]()
            self._answers.append(answer)
            self._entries.append(GrowingText(self._automaton))
            return count, self._automaton, answer

    def answers(self) -> list[list[int]]:
        """List all answers, the oldest first."""
        with self._lock:
            return [*self._answers]

    def reading(self) -> AbstractContextManager[object]:
        """Return a lock that keeps other runs from adding answers."""
        return self._lock

    def _evict(self) -> None:
        """Make room for one more answer. Current runs keep the automaton that they began with."""
        answers, size = self._answers, sum(map(len, self._answers))
        if len(answers) <= self._most and size <= self._largest:
            return
        # Half of them at once: an automaton forgets nothing, so it is rebuilt from those that stay.
        while answers and (len(answers) > max(1, self._most // 2) or size > self._largest // 2):
            size -= len(answers.popleft())
        self._automaton = SuffixAutomaton(self._depth, sorts=self._sorts)
        self._entries = [GrowingText(self._automaton) for _ in answers]


class NextAnswer:
    """The answer that a run is writing, and the state of the text's ending among earlier answers."""

    def __init__(self, earlier: EarlierAnswers, text: Sequence[int]) -> None:
        self.before, self.automaton, self.tokens = earlier.begin()
        self.ending = Ending()
        self._earlier, self._read = earlier, max(0, len(text) - self.automaton.depth)

    def follow(self, text: Sequence[int]) -> None:
        """Advance the ending by the tokens that the text has gained."""
        for token in text[self._read :]:
            self.automaton.advance(self.ending, token)
        self._read = len(text)

    def others(self) -> dict[int, Sequence[int]]:
        """Number the answers other than this one, the latest first."""
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
            if len(latest) == _OCCURRENCES:  # no earlier position can be listed, and earlier answers may be long
                return [*latest.values()]
    return [*latest.values(), *others][:_OCCURRENCES]
