"""The layout of a tree: the column is the depth, and a row is a branch.

A first child is in its parent's row, so the method's first choices are a straight line; every other child begins a new
row. The order is that of the draft, never that of the verdict, which the picture must not reveal.
"""

from __future__ import annotations

from functools import lru_cache

from decoding.types import Role, Step


def rows(step: Step) -> tuple[int | None, ...]:
    """Return the row of every node; None for explored nodes and their descendants, which are not in the tree."""
    return _rows(step.parents, step.roles)


@lru_cache(maxsize=8)
def _rows(parents: tuple[int, ...], roles: tuple[Role, ...]) -> tuple[int | None, ...]:
    below: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent >= 0 and roles[node] is not Role.EXPLORE:
            below[parent].append(node)
    row_of: list[int | None] = [None] * len(parents)
    last, waiting = 0, [(0, 0)][: len(parents)]  # nodes to visit, with their rows; -1: the next that is free
    while waiting:
        node, row = waiting.pop()
        if row < 0:
            last += 1
            row = last
        row_of[node] = row
        children = below[node]
        waiting.extend((child, -1) for child in reversed(children[1:]))
        waiting.extend((child, row) for child in children[:1])
    return tuple(row_of)
