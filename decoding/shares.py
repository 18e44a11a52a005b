"""Cuts a tree of guesses into shares: some leaves for each rank, with their ancestors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from .tree import path_to


@dataclass(frozen=True, slots=True)
class Shares:
    """Which rank reads which nodes of a tree; all read its root."""

    nodes: tuple[tuple[int, ...], ...]  # by rank, in the tree's order: its leaves and their ancestors
    readers: tuple[tuple[int, ...], ...]  # by node: the ranks that read it; the first one's choice counts


@lru_cache(maxsize=64)
def cut(parents: tuple[int, ...], ranks: int) -> Shares:
    """Give each rank neighbouring leaves in depth-first order, with as few nodes as possible in the largest share.

    Neighbours have the most ancestors in common. If there are fewer leaves than ranks, the last ranks read the root
    alone.
    """
    leaves = _leaves(parents)
    paths = [path_to(parents, leaf) for leaf in leaves]
    # In depth-first order, the ancestors that a leaf shares with any earlier leaf it shares with the one before it.
    added = [len(paths[0]), *(_new(before, path) for before, path in pairwise(paths))]
    low, high = max(map(len, paths)), len(parents)
    while low < high:
        most = (low + high) // 2
        if len(_begins(paths, added, most)) <= ranks:
            high = most
        else:
            low = most + 1
    begins = _begins(paths, added, low)
    bounds = [*begins, *[len(leaves)] * (ranks + 1 - len(begins))]
    nodes = tuple(tuple(sorted({0}.union(*paths[begin:stop]))) for begin, stop in pairwise(bounds))
    readers: list[list[int]] = [[] for _ in parents]
    for rank, share in enumerate(nodes):
        for node in share:
            readers[node].append(rank)
    return Shares(nodes, tuple(map(tuple, readers)))


def _leaves(parents: tuple[int, ...]) -> list[int]:
    """Return the leaves in depth-first order, with children in the tree's order."""
    below: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents[1:], start=1):
        below[parent].append(node)
    leaves, waiting = list[int](), [0]
    while waiting:
        node = waiting.pop()
        if not below[node]:
            leaves.append(node)
        waiting.extend(reversed(below[node]))
    return leaves


def _new(before: tuple[int, ...], path: tuple[int, ...]) -> int:
    """Count the nodes of `path` that are not on the path `before`."""
    return len(path) - sum(here == there for here, there in zip(before, path, strict=False))


def _begins(paths: list[tuple[int, ...]], added: list[int], most: int) -> list[int]:
    """Return the first leaf of each share, for the fewest shares of at most `most` nodes each."""
    begins, size = [0], 0
    for leaf, path in enumerate(paths):
        size += added[leaf]
        if size > most:
            begins.append(leaf)
            size = len(path)
    return begins
