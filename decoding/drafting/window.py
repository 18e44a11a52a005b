"""The window of Lookahead decoding (Fu et al., 2024, arXiv 2402.02057): Jacobi iterations whose columns are n-grams.

The window grows from one row to N-1. Row 0 is a chain after the root, which is its column 0; cell i of row 1 follows
column i of that chain, a cell of a later row the cell above. So every column is a text, and the model's choice at its
end is the column's next token.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import takewhile

from ..tree import Builder
from ..types import Draft, Role


class Window:
    """W columns of up to N-1 rows; no list in `rows` ever changes."""

    def __init__(self, W: int, N: int, refill: Callable[[], int]) -> None:
        """`refill` returns tokens for cells that the model has not computed."""
        self._N, self._refill = N, refill
        self._ends: list[int] = []  # the node at the end of every column
        self.rows = [[refill() for _ in range(W + N - 3)]]

    @property
    def full(self) -> bool:
        """Return True if its columns are long enough to be harvested."""
        return len(self.rows) == self._N - 1

    def put(self, tree: Builder) -> None:
        """Add the window to a tree, below the root."""
        first, *later = self.rows
        ends = [0]
        for i, token in enumerate(first, start=1):
            ends.append(tree.add(token, ends[-1], f"window:0,{i}", Role.EXPLORE))
        for r, row in enumerate(later, start=1):
            cells = enumerate(zip(row, ends, strict=True))
            ends = [tree.add(token, above, f"window:{r},{i}", Role.EXPLORE) for i, (token, above) in cells]
        self._ends = ends

    def unasked(self, tree: Draft) -> set[int]:
        """Return the cells whose logits are not needed: all but the last of each column."""
        return {node for node, role in enumerate(tree.roles) if role is Role.EXPLORE} - {*self._ends}

    def answers(self, argmax: Sequence[int] | Mapping[int, int]) -> list[int]:
        """Return the model's choice at the end of every column, from its choices at the nodes of the tree."""
        return [argmax[end] for end in self._ends]

    def columns(self, root: int, new: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yield the n-grams of a full window: each column's token of the chain, the cells below it and the answer."""
        first, *later = self.rows
        return zip([root, *first], *later, new, strict=True)

    def move(self, new: list[int]) -> None:
        """Append the answers as a row, and shift by a column; a full window drops its first row."""
        if self.full:
            self.rows = [self.rows[1][1:], *self.rows[2:], new]
        else:
            self.rows = [*(row[1:] for row in self.rows), new[1:]]

    def drop(self, columns: int) -> None:
        """Shift by further columns, and refill the end of every row."""
        self.rows = [row[columns:] + [self._refill() for _ in row[:columns]] for row in self.rows]


def largest_window(W: int, N: int) -> int:
    """Count the nodes of the largest window, root included: a full one, or a filling one narrower than tall."""
    return max((row + 1) * (W + N - 2 - row) for row in range(N - 1))


def largest_pass(W: int, N: int, G: int) -> int:
    """Count the rows of a drafter's largest pass: window (none if W is 0), G guesses and the last n-gram."""
    return (largest_window(W, N) if W else 1) + G * (N - 1) + N


def before_end(tokens: Sequence[int], ends: Collection[int]) -> tuple[int, ...]:
    """Return the tokens before an end of text: as a guess it is wasted, since its parent's row writes it for free."""
    return tuple(takewhile(lambda token: token not in ends, tokens))
