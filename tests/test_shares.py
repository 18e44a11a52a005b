"""The cut of a tree into shares, against all cuts that there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, pairwise

from hypothesis import given
from hypothesis import strategies as st

from decoding.shares import cut
from decoding.tree import path_to


def trees(most: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Return trees of up to so many nodes."""
    above = st.lists(st.integers(0, 10**6), max_size=most - 1)
    return above.map(lambda numbers: (-1, *(number % (node + 1) for node, number in enumerate(numbers))))


def leaves(parents: tuple[int, ...], node: int = 0) -> Iterator[int]:
    """Yield the leaves from left to right, by the definition."""
    below = [child for child, parent in enumerate(parents) if parent == node]
    if not below:
        yield node
    for child in below:
        yield from leaves(parents, child)


def closure(parents: tuple[int, ...], some: list[int]) -> set[int]:
    """Return some nodes and all above them; the root in any case."""
    return {0}.union(*(path_to(parents, node) for node in some))


def brute(parents: tuple[int, ...], ranks: int) -> int:
    """Return the largest share of the best of all cuts."""
    row = [*leaves(parents)]
    cuts = combinations_with_replacement(range(len(row) + 1), ranks - 1)
    bounds = ([0, *inner, len(row)] for inner in cuts)
    return min(max(len(closure(parents, row[a:b])) for a, b in pairwise(each)) for each in bounds)


@given(trees(11), st.integers(1, 4))
def test_the_largest_share_is_as_small_as_can_be(parents: tuple[int, ...], ranks: int) -> None:
    """A worse cut lets all ranks wait for the one with the most rows."""
    shares = cut(parents, ranks)
    assert max(map(len, shares.nodes)) == brute(parents, ranks)


@given(trees(40), st.integers(1, 6))
def test_shares_are_closures_of_neighbouring_leaves(parents: tuple[int, ...], ranks: int) -> None:
    """A node without its ancestors cannot be read; a leaf that nobody reads has no choice."""
    shares, row = cut(parents, ranks), [*leaves(parents)]
    assert len(shares.nodes) == ranks
    theirs = [[leaf for leaf in row if leaf in nodes] for nodes in map(set, shares.nodes)]
    assert [leaf for some in theirs for leaf in some if len(row) > 1] == row * (len(row) > 1)
    for nodes, some in zip(shares.nodes, theirs, strict=True):
        assert list(nodes) == sorted(closure(parents, some))
    for node, readers in enumerate(shares.readers):
        assert readers and readers == tuple(rank for rank, nodes in enumerate(shares.nodes) if node in nodes)


def test_a_chain_is_not_split() -> None:
    """It has one leaf, so the other ranks have the root alone."""
    assert cut((-1, 0, 1, 2), 3).nodes == ((0, 1, 2, 3), (0,), (0,))


def test_branches_are_shared_out_evenly() -> None:
    """Three guesses of two tokens and a window's column: the root is read by all."""
    parents = (-1, 0, 1, 0, 3, 0, 5, 0, 7)
    assert cut(parents, 2).nodes == ((0, 1, 2, 3, 4), (0, 5, 6, 7, 8))
    assert cut(parents, 2).readers[0] == (0, 1)
