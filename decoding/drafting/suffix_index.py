"""Finds earlier occurrences of a text's suffixes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence


class SuffixIndex:
    """All n-grams of a growing text for n in a range, each with the positions right after its occurrences.

    The time to add a token or look an ending up does not depend on the text's length.
    """

    def __init__(self, shortest: int, longest: int) -> None:
        self._sizes = range(shortest, longest + 1)
        self._places: dict[tuple[int, ...], list[int]] = {}
        self._size = 0

    def update(self, text: Sequence[int]) -> None:
        """Index what `text` has gained since the last call: every n-gram that a token follows."""
        for place in range(max(1, self._size), len(text)):
            for n in self._sizes:
                if n <= place:
                    self._places.setdefault(tuple(text[place - n : place]), []).append(place)
        self._size = len(text)

    def places(self, ending: Sequence[int]) -> Sequence[int]:
        """List the positions after all occurrences of `ending` that an indexed token follows, in order."""
        return self._places.get(tuple(ending), ())

    def find(self, ending: Sequence[int], *, latest: bool, room: int = 1) -> int | None:
        """Find the first or last position after an `ending` that at least `room` indexed tokens follow."""
        places = self.places(ending)
        fitting = bisect_right(places, self._size - room)
        if fitting == 0:
            return None
        return places[fitting - 1] if latest else places[0]
