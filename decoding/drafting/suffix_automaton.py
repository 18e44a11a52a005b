"""Counts all short runs of tokens in texts that grow: a suffix tree of bounded depth, in the form of an automaton.

A state stands for all runs that end at the same places, so that a text of n tokens has at most 2 n states, however it
repeats itself (Blumer et al., 1985; several texts: Mohri et al., 2009). Adding a token takes a time that does not
depend on the text's length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_ROOT = 0


@dataclass(frozen=True, slots=True)
class Child:
    """A token that followed a run."""

    token: int
    count: int  # how often it did
    state: int  # of the run that it makes longer


class SuffixAutomaton:
    """How often every run of at most `depth` tokens stands in the texts, and what followed it there."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        # Of every state: where each token leads; the state of its longest shorter ending; the longest of its runs; how
        # often they stand in the texts; and when they were added last. The last two count runs of `depth` tokens only.
        self._next: list[dict[int, int]] = [{}]
        self._link, self._length = [-1], [0]
        self._count, self._latest = [0], [0]

    @property
    def size(self) -> int:
        """How many states there are."""
        return len(self._link)

    def count(self, state: int) -> int:
        """How often the runs of a state stand in the texts."""
        return self._count[state]

    def children(self, state: int) -> list[Child]:
        """What followed a state's runs, the most frequent first, of equals the one that did so last."""
        found, count, latest = self._next[state].items(), self._count, self._latest
        if len(found) < 2:
            return [Child(token, count[child], child) for token, child in found]
        best = sorted(found, key=lambda pair: (count[pair[1]], latest[pair[1]]), reverse=True)
        return [Child(token, count[child], child) for token, child in best]

    def endings(self, place: Place) -> Iterator[tuple[range, int]]:
        """The endings at a place, the longest first: a state, and the numbers of tokens of those that it stands for."""
        self._settle(place)
        state, length = place.state, place.length
        while state != _ROOT:
            above = self._link[state]
            yield range(length, self._length[above], -1), state
            state, length = above, self._length[above]

    def advance(self, place: Place, token: int) -> None:
        """Move a place behind one more token, to the longest ending of at most `depth` tokens that is in the texts."""
        self._settle(place)
        state, length = place.state, place.length
        while state != _ROOT and token not in self._next[state]:
            state = self._link[state]
            length = self._length[state]
        found = self._next[state].get(token)
        place.state, place.length = (_ROOT, 0) if found is None else (found, min(length + 1, self.depth))
        self._settle(place)

    def _settle(self, place: Place) -> None:
        """Find the state of a place's ending again, which may be another one since texts have grown."""
        while place.length <= self._length[self._link[place.state]] and place.state != _ROOT:
            place.state = self._link[place.state]

    def _add(self, last: int, token: int) -> int:
        """Add a token behind a text whose state is `last`; returns the text's new one."""
        known = self._next[last].get(token)
        if known is not None:
            return self._exactly(last, token, known)
        state, above = self._new(self._length[last] + 1, {}, _ROOT, 0, 0), last
        while above >= 0 and token not in self._next[above]:
            self._next[above][token] = state
            above = self._link[above]
        if above >= 0:
            self._link[state] = self._exactly(above, token, self._next[above][token])
        return state

    def _exactly(self, above: int, token: int, state: int) -> int:
        """The state of the longest run of `above` and `token`: `state`, if no run there is longer, or a part of it."""
        length = self._length[above] + 1
        if self._length[state] == length:
            return state
        part = self._new(length, {**self._next[state]}, self._link[state], self._count[state], self._latest[state])
        self._link[state] = part
        while above >= 0 and self._next[above].get(token) == state:
            self._next[above][token] = part
            above = self._link[above]
        return part

    def _new(self, length: int, following: dict[int, int], link: int, count: int, latest: int) -> int:
        self._next.append(following)
        self._length.append(length)
        self._link.append(link)
        self._count.append(count)
        self._latest.append(latest)
        return len(self._link) - 1

    def _note(self, place: Place) -> None:
        """Count all endings at a place once more."""
        self._count[_ROOT] += 1
        now, state = self._count[_ROOT], place.state
        while state != _ROOT:
            self._count[state] += 1
            self._latest[state] = now
            state = self._link[state]


@dataclass(slots=True)
class Place:
    """Where a text's ending stands in an automaton, as far as it is found there."""

    state: int = _ROOT
    length: int = 0  # tokens of the ending that are found


class Entry:
    """A growing text in an automaton."""

    def __init__(self, automaton: SuffixAutomaton) -> None:
        self.place, self.size = Place(), 0
        self._automaton, self._last = automaton, _ROOT

    def update(self, text: Sequence[int]) -> None:
        """Add what `text` has more than at the last call."""
        self.extend(text[self.size :])

    def extend(self, tokens: Iterable[int]) -> None:
        """Add tokens behind the text."""
        automaton = self._automaton
        for token in tokens:
            self._last = automaton._add(self._last, token)
            automaton.advance(self.place, token)
            automaton._note(self.place)
            self.size += 1
