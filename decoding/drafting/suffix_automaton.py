"""Counts all short substrings of growing texts: a suffix tree of bounded depth, as an automaton.

A state represents all substrings that end at the same positions, so a text of n tokens has at most 2 n states, however
it repeats itself (Blumer et al., 1985; several texts: Mohri et al., 2009). The time to add a token does not depend on
the text's length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_ROOT = 0


@dataclass(frozen=True, slots=True)
class Child:
    """A token that followed a substring."""

    token: int
    count: int  # how often
    state: int  # of the substring with this token


class SuffixAutomaton:
    """Counts how often every substring of at most `depth` tokens occurs in the texts, and the tokens after it.

    With `sorts`, tokens that followed equally often are in the order of SuffixDecoding's reference code.
    """

    def __init__(self, depth: int, *, sorts: bool = False) -> None:
        self.depth, self._sorts = depth, sorts
        self._order: list[list[int]] = [[]]  # with `sorts`, the tokens after every state
        # Columns by state: where each token leads; the suffix link; the length of the longest substring; how often its
        # substrings occur; and when they were last added. The last two only count substrings of up to `depth` tokens.
        self._next: list[dict[int, int]] = [{}]
        self._link, self._length = [-1], [0]
        self._count, self._latest = [0], [0]

    @property
    def size(self) -> int:
        """Count the states."""
        return len(self._link)

    def count(self, state: int) -> int:
        """Return how often the substrings of a state occur in the texts."""
        return self._count[state]

    def children(self, state: int) -> list[Child]:
        """List the tokens after a state, the most frequent first; without `sorts`, ties go to the latest."""
        followers, count, latest = self._next[state].items(), self._count, self._latest
        if self._sorts:
            return [
                Child(token, count[child], child)
                for token in self._order[state]
                for child in (self._next[state][token],)
            ]
        if len(followers) < 2:
            return [Child(token, count[child], child) for token, child in followers]
        best = sorted(followers, key=lambda pair: (count[pair[1]], latest[pair[1]]), reverse=True)
        return [Child(token, count[child], child) for token, child in best]

    def endings(self, ending: Ending) -> Iterator[tuple[range, int]]:
        """Yield the states of an ending and of its suffixes, the longest first, with the lengths of each."""
        self._settle(ending)
        state, length = ending.state, ending.length
        while state != _ROOT:
            above = self._link[state]
            yield range(length, self._length[above], -1), state
            state, length = above, self._length[above]

    def advance(self, ending: Ending, token: int) -> None:
        """Extend an ending by a token, and cut it to its longest suffix of at most `depth` tokens in the texts."""
        self._settle(ending)
        state, length = ending.state, ending.length
        while state != _ROOT and token not in self._next[state]:
            state = self._link[state]
            length = self._length[state]
        following = self._next[state].get(token)
        ending.state, ending.length = (_ROOT, 0) if following is None else (following, min(length + 1, self.depth))
        self._settle(ending)

    def _settle(self, ending: Ending) -> None:
        """Update the state of an ending, which may have changed as texts grew."""
        while ending.length <= self._length[self._link[ending.state]] and ending.state != _ROOT:
            ending.state = self._link[ending.state]

    def _add(self, last: int, token: int) -> int:
        """Append a token to a text whose state is `last`; return its new state."""
        following = self._next[last].get(token)
        if following is not None:
            return self._exactly(last, token, following)
        state, above = self._new(self._length[last] + 1, {}, _ROOT, 0, 0), last
        while above >= 0 and token not in self._next[above]:
            self._next[above][token] = state
            above = self._link[above]
        if above >= 0:
            self._link[state] = self._exactly(above, token, self._next[above][token])
        return state

    def _exactly(self, above: int, token: int, state: int) -> int:
        """Return the state of `above`'s longest substring and `token`: `state` itself, or a part split from it."""
        length = self._length[above] + 1
        if self._length[state] == length:
            return state
        part = self._new(length, {**self._next[state]}, self._link[state], self._count[state], self._latest[state])
        self._order[part] = [*self._order[state]]
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
        self._order.append([])
        return len(self._link) - 1

    def _note(self, ending: Ending) -> None:
        """Increment the count of every suffix of an ending."""
        self._count[_ROOT] += 1
        now, state = self._count[_ROOT], ending.state
        while state != _ROOT:
            self._count[state] += 1
            self._latest[state] = now
            state = self._link[state]

    def _sort(self, ending: Ending, token: int) -> None:
        """Reorder the token that has just followed an ending among the followers of each of its suffixes.

        A new token becomes the last. Among those with its previous count, the first becomes the first of those with
        one more, and any other becomes the last of these.
        """
        self._settle(ending)
        state = ending.state
        while state >= 0:
            order, following = self._order[state], self._next[state]
            counts = [self._count[following[each]] for each in order]
            place = order.index(token) if token in order else len(order)
            if place == len(order):
                order.append(token)
            elif place and counts[place - 1] <= counts[place]:
                order.insert(counts.index(counts[place - 1]), order.pop(place))
            state = self._link[state]


@dataclass(slots=True)
class Ending:
    """The longest suffix of a text that is in an automaton."""

    state: int = _ROOT
    length: int = 0  # tokens


class GrowingText:
    """A text that grows in an automaton."""

    def __init__(self, automaton: SuffixAutomaton) -> None:
        self.ending, self.size = Ending(), 0
        self._automaton, self._last = automaton, _ROOT

    def update(self, text: Sequence[int]) -> None:
        """Append what `text` has gained since the last call."""
        self.extend(text[self.size :])

    def extend(self, tokens: Iterable[int]) -> None:
        """Append tokens."""
        automaton = self._automaton
        for token in tokens:
            before = Ending(self.ending.state, self.ending.length)
            self._last = automaton._add(self._last, token)
            automaton.advance(self.ending, token)
            automaton._note(self.ending)
            if automaton._sorts:
                automaton._sort(before, token)
            self.size += 1
