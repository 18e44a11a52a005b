"""The window of Lookahead decoding: Jacobi iterations on a few rows, whose columns are n-grams."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile


def largest_pass(W: int, N: int, G: int) -> int:
    """Rows of the drafter's largest pass: the window, G guesses, and the tokens that an n-gram put behind the text."""
    window = max((row + 1) * (W + N - 2 - row) for row in range(N - 1)) if W else 1
    return window + G * (N - 1) + N


def before_end(tokens: Sequence[int], ends: Collection[int]) -> tuple[int, ...]:
    """The tokens in front of an end of text: as a guess it is wasted, since its parent's row writes it for free."""
    return tuple(takewhile(lambda token: token not in ends, tokens))
