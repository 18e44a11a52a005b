"""Medusa's trees: what texts may spell, and that growth finds the best tree there is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given as holds_for
from hypothesis import settings
from hypothesis import strategies as st

from decoding.errors import ParamError
from decoding.parts.medusa_tree import (
    Path,
    TreeShape,
    assumed,
    cartesian,
    default,
    expected_length,
    from_paths,
    given,
    grow,
    sizes_in,
)
from decoding.tree import check, depths

FIGURE_2 = "0;1;0,0;0,1;0,2;1,0;1,1;1,2"
shares = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]) | st.floats(0.0, 1.0)
tables = st.lists(st.lists(shares, min_size=1, max_size=3), min_size=1, max_size=3)


@st.composite
def trees(draw: st.DrawFn) -> set[Path]:
    """Return the paths of any tree."""
    paths: list[Path] = [()]
    for _ in range(draw(st.integers(1, 12))):
        paths.append((*draw(st.sampled_from(paths)), draw(st.integers(0, 4))))
    return set(paths) - {()}


def test_the_papers_figure() -> None:
    """Two guesses of the first head and three of the second: 2 + 2 * 3 nodes, each child below every parent."""
    tree = cartesian((2, 3))
    assert tree.parents == (-1, 0, 0, 1, 1, 1, 2, 2, 2)
    assert tree.depths == (0, 1, 1, 2, 2, 2, 2, 2, 2)
    assert tree.ranks == (0, 0, 1, 0, 1, 2, 0, 1, 2)
    assert tree == given(FIGURE_2) and sizes_in("2,3") == sizes_in(" 2 , 3 ") == (2, 3)


@holds_for(st.lists(st.integers(1, 4), max_size=4))
def test_a_cartesian_tree_has_the_papers_number_of_nodes(sizes: list[int]) -> None:
    """The sum over k of s1 * ... * sk, and every combination once."""
    tree = cartesian((*sizes,))
    ways = [list(itertools.product(*map(range, sizes[:k]))) for k in range(1, len(sizes) + 1)]
    assert sorted(tree.paths) == sorted(sum(ways, []))


@holds_for(trees(), st.randoms(use_true_random=False))
def test_every_spelling_of_a_tree_is_read(paths: set[Path], chance: Any) -> None:
    """Published trees are lists of tuples in the order in which they grew; their order must not matter."""
    order = sorted(paths, key=lambda path: chance.random())
    tree = given(";".join(",".join(map(str, path)) for path in order))
    assert set(tree.paths) == paths
    assert tree == given(str(order)) == given(str([list(path) for path in order])) == given(tree.text)
    check(tree.parents)
    assert depths(tree.parents) == tree.depths == (0, *map(len, tree.paths))
    assert tree.ranks[1:] == tuple(path[-1] for path in tree.paths)


HOSTILE = [
    "",
    " ",
    ";",
    "0;",
    "0;;1",
    "0,;1",
    "a",
    "-1",
    "+1",
    "0.5",
    "1_0",
    "\u0663",
    "0;0",
    "0,0",
    "0;0,1,0",
    "256",
    "9" * 5000,
    "[",
    "[]",
    "[[]]",
    "[0]",
    "[[0.0]]",
    "[[true]]",
    "[[-1]]",
    "[[null]]",
    "[[NaN]]",
    "[[256]]",
    "[[" + "9" * 5000 + "]]",
    "[" * 5000,
    '["0"]',
    "[[0], [0]]",
    "0;" * 40_000,
    ";".join(",".join("0" * depth) for depth in range(1, 66)),
    ";".join(map(str, [*range(64), *(f"{i},{j}" for i in range(64) for j in range(64))])),
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_tree_is_refused_in_a_sentence(text: str) -> None:
    """Text from a page's field must never end in a traceback, nor in a tree with a hole."""
    with pytest.raises(ParamError) as error:
        given(text)
    assert len(str(error.value)) < 300 and "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "0", "2,0", "2,", "a", "257", "64,64,64", ",".join("1" * 65), "9" * 99_999])
def test_what_are_no_sizes_is_refused_in_a_sentence(text: str) -> None:
    """A few digits can ask for more nodes than there is memory."""
    with pytest.raises(ParamError) as error:
        sizes_in(text)
    assert len(str(error.value)) < 300 and "\n" not in str(error.value)


def test_the_refusal_says_what_to_add() -> None:
    """A tree with a hole is the commonest mistake in a hand-written one."""
    with pytest.raises(ParamError, match="the path 0,1 has no parent: add the path 0 to the tree"):
        given("1;0,1")
    with pytest.raises(ParamError, match="the path 1 is in the tree twice"):
        given("0;1;1")


def all_trees(ranks: Sequence[int], nodes: int) -> set[frozenset[Path]]:
    """Return every prefix-closed set of at most so many paths, with so many ranks at each depth."""
    trees, fresh = {frozenset[Path]()}, {frozenset[Path]()}
    for _ in range(nodes):
        fresh = {
            tree | {(*above, rank)}
            for tree in fresh
            for above in (*tree, ())
            if len(above) < len(ranks)
            for rank in range(ranks[len(above)])
        }
        trees |= fresh
    return trees


@settings(max_examples=60)
@holds_for(tables, st.integers(1, 4))
def test_growth_finds_the_best_of_all_trees(table: list[list[float]], nodes: int) -> None:
    """A greedy search that looks at the next sibling and the first child only misses trees if ranks are unsorted."""
    tree = grow(table, nodes)
    assert len(tree.parents) <= nodes + 1
    every = all_trees([len(row) for row in table], nodes)
    assert frozenset(tree.paths) in every
    most = max(expected_length(from_paths(sorted(paths, key=len)), table) for paths in every)
    assert expected_length(tree, table) == pytest.approx(most)


def test_the_search_above_can_tell() -> None:
    """The widest and the deepest tree of three guesses are both worse than the grown one."""
    table = [[0.6, 0.3, 0.1], [0.4, 0.2], [0.1]]
    assert set(grow(table, 3).paths) == {(0,), (1,), (0, 0)}
    assert expected_length(grow(table, 3), table) == pytest.approx(1 + 0.6 + 0.3 + 0.24)
    assert (
        expected_length(given("0;1;2"), table)
        < expected_length(given("0;1;0,0"), table)
        > expected_length(given("0;0,0;0,0,0"), table)
    )


def test_a_later_rank_may_be_the_better_one() -> None:
    """Measured on few tokens, accuracies are not in order."""
    assert grow([[0.1, 0.7, 0.2]], 2).paths == [(1,), (2,)]


@holds_for(tables)
def test_a_smaller_tree_is_the_beginning_of_a_larger_one(table: list[list[float]]) -> None:
    """So a step with too little room keeps the best guesses."""
    whole = grow(table, 40).paths
    for nodes in range(1, 12):
        assert grow(table, nodes).paths == whole[:nodes]


@holds_for(tables)
def test_guesses_that_are_never_right_are_left_out(table: list[list[float]]) -> None:
    """They would cost time and never be accepted."""
    for path in grow(table, 40).paths:
        assert all(table[depth][rank] > 0.0 for depth, rank in enumerate(path))


def test_heads_that_are_never_right_get_no_tree() -> None:
    """The root alone is the best that can be done for them."""
    assert grow([[0.0] * 10] * 3, 63) == grow([], 63) == TreeShape((-1,), (0,), (0,))


@holds_for(tables, trees())
def test_the_expectation_is_that_of_heads_that_err_independently(table: list[list[float]], paths: set[Path]) -> None:
    """Enumerated: every head is right at one of its ranks or at none, and a path is accepted as far as it is right."""
    rows = [[share / max(1.0, sum(row)) for share in row] for row in table]
    mean = 0.0
    for truth in itertools.product(*(range(len(row) + 1) for row in rows)):
        chance = 1.0
        for row, rank in zip(rows, truth, strict=True):
            chance *= row[rank] if rank < len(row) else 1.0 - sum(row)
        right = [rank if rank < len(row) else None for row, rank in zip(rows, truth, strict=True)]
        accepted = 0
        while accepted < len(right) and tuple(right[: accepted + 1]) in paths:
            accepted += 1
        mean += chance * (accepted + 1)
    assert expected_length(from_paths(sorted(paths, key=len)), rows) == pytest.approx(mean)


def test_the_default_tree() -> None:
    """63 guesses as in the paper, four deep for four heads or five; measured accuracies count where there are any."""
    for heads in (4, 5):
        assert len(default(heads).paths) == 63
        assert max(default(heads).depths) >= 4
    assert len(default(1).paths) == 10
    assert max(default(2).depths) == 2
    assert default(2, [[0.5], [0.25], [1.0]]).paths == [(0,), (0, 0)]
    assert len(default(5, nodes=256).paths) == 256
    assert all(sum(row) <= 1.0 for row in assumed(64))
