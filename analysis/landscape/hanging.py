"""Trees that hang off a text: what is read behind many of its places in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class HangingTree(NamedTuple):
    """A tree that stands behind some tokens, and these behind a part of the text."""

    length: int  # of the part
    stored: tuple[int, ...]
    tokens: tuple[int, ...]
    parents: tuple[int, ...]  # in the tree; -1: what stands in front of it

    @property
    def rows(self) -> int:
        """Rows that it takes beside those of the text."""
        return len(self.stored) + len(self.tokens)


class Pass(NamedTuple):
    """The rows of a pass behind the first tokens of the text."""

    tokens: list[int]
    parents: tuple[int, ...]
    rows: list[list[int]]  # those of every tree


def parted(start: int, rows: Sequence[tuple[int, int]], most: int) -> Iterator[list[int]]:
    """Which trees to read together, so that a pass behind `start` tokens has at most so many rows, or one tree.

    Of every tree it takes the tokens of the text in front of it, and its rows.
    """
    part, total = list[int](), 0
    for one in sorted(range(len(rows)), key=lambda one: rows[one][0]):
        length, own = rows[one]
        if part and length - start + total + own > most:
            yield part
            part, total = [], 0
        part.append(one)
        total += own
    yield part


def hang(text: Sequence[int], start: int, trees: Sequence[HangingTree]) -> Pass:
    """A pass behind the first `start` tokens: the text on, and trees off it.

    Of what stands in front of trees, rows that see the same are one row. A tree has rows of its own, so that they are
    neighbours: answers for them need not be copied.
    """
    tokens, parents, known = list[int](), list[int](), dict[tuple[int, int], int]()

    def row(token: int, parent: int, *, shared: bool = True) -> int:
        if shared and (parent, token) in known:
            return known[parent, token]
        tokens.append(token)
        parents.append(parent)
        return known.setdefault((parent, token), len(tokens) - 1) if shared else len(tokens) - 1

    ends = [-1]  # of the text, by its length
    for token in text[start : max(tree.length for tree in trees)]:
        ends.append(row(token, ends[-1]))
    found = list[list[int]]()
    for tree in trees:
        above, rows = ends[tree.length - start], list[int]()
        for token in tree.stored:
            above = row(token, above)
        for token, parent in zip(tree.tokens, tree.parents, strict=True):
            place = above if parent < 0 else rows[parent]
            rows.append(row(token, place, shared=place < 0))  # a pass has one root
        found.append(rows)
    return Pass(tokens, tuple(parents), found)
