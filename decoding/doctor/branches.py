"""A text with a chain of guesses behind each of some places, as one tree: for models that can read trees."""

from __future__ import annotations

from collections.abc import Sequence


class Branches:
    """Rows in the order in which they are read: the text up to the last place, then the guesses, level by level."""

    def __init__(self, text: Sequence[int], places: Sequence[int]) -> None:
        """`text` begins with the first row; `places` are rows of it, ascending."""
        self.tokens = [*text[: places[-1] + 1]]
        self.parents = [*range(-1, len(self.tokens) - 1)]
        self.rows = [*places]  # of the last level: the guesses, or the places themselves
        self.depths = [*range(len(self.tokens))]

    def grow(self, tokens: Sequence[int]) -> None:
        """Put one more guess behind every chain."""
        first = len(self.tokens)
        self.depths += [self.depths[row] + 1 for row in self.rows]
        self.parents += self.rows
        self.tokens += tokens
        self.rows = [*range(first, len(self.tokens))]
