"""Trees after different positions of a text, joined into one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

ROWS = 512  # of a pass


class HangingTree(NamedTuple):
    """A tree that follows some tokens, which follow a part of the text."""

    length: int  # of the part
    stored: tuple[int, ...]
    tokens: tuple[int, ...]
    parents: tuple[int, ...]  # in the tree; -1: the last of the tokens in front of it

    @property
    def rows(self) -> int:
        """Count the rows that it needs beside those of the text."""
        return len(self.stored) + len(self.tokens)


class JoinedTrees(NamedTuple):
    """The rows of a pass after the first tokens of the text."""

    tokens: list[int]
    parents: tuple[int, ...]
    rows: list[list[int]]  # those of every tree


def passes(start: int, sizes: Sequence[tuple[int, int]], most: int) -> Iterator[list[int]]:
    """Group trees into passes of at most `most` rows, or of one tree.

    `sizes` gives for every tree the tokens of the text in front of it and its rows; a pass also reads the text on, from
    its first `start` tokens.
    """
    group, total = list[int](), 0
    for tree in sorted(range(len(sizes)), key=lambda tree: sizes[tree][0]):
        length, rows = sizes[tree]
        if group and length - start + total + rows > most:
            yield group
            group, total = [], 0
        group.append(tree)
        total += rows
    yield group


def join(text: Sequence[int], start: int, trees: Sequence[HangingTree]) -> JoinedTrees:
    """Make a pass that reads the text on from its first `start` tokens, with the trees attached to it.

    Tokens in front of trees are shared where they attend to the same tokens. The rows of a tree are its own, so that
    they are neighbours: answers for them need not be copied.
    """
    tokens, parents, shared = list[int](), list[int](), dict[tuple[int, int], int]()

    def add(token: int, parent: int) -> int:
        tokens.append(token)
        parents.append(parent)
        return len(tokens) - 1

    def share(token: int, parent: int) -> int:
        if (parent, token) not in shared:
            shared[parent, token] = add(token, parent)
        return shared[parent, token]

    ends = [-1]  # of the text, by its length
    for token in text[start : max(tree.length for tree in trees)]:
        ends.append(share(token, ends[-1]))
    rows_of_trees = list[list[int]]()
    for tree in trees:
        above, rows = ends[tree.length - start], list[int]()
        for token in tree.stored:
            above = share(token, above)
        for token, parent in zip(tree.tokens, tree.parents, strict=True):
            parent_row = above if parent < 0 else rows[parent]
            rows.append(add(token, parent_row) if parent_row >= 0 else share(token, parent_row))  # a pass has one root
        rows_of_trees.append(rows)
    return JoinedTrees(tokens, tuple(parents), rows_of_trees)
