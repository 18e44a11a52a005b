"""Trees as parent arrays: the mask, depths and paths against their definitions, and the builder."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.accept import greedy, walk
from decoding.model.attention import Attention
from decoding.model.kernels import choose
from decoding.tree import Builder, after_chain, check, closure, depths, is_chain, path_to, paths
from decoding.types import Role
from tests.noise import noise


@st.composite
def trees(draw: st.DrawFn, largest: int = 24) -> tuple[int, ...]:
    """Draw any parent array."""
    size = draw(st.integers(1, largest))
    return (-1, *(draw(st.integers(0, node - 1)) for node in range(1, size)))


def ancestors(parents: Sequence[int], node: int) -> list[int]:
    """Return a node and all above it, by the definition."""
    return [node] if parents[node] < 0 else [*ancestors(parents, parents[node]), node]


@given(trees())
def test_mask_depths_and_paths_are_the_ancestors(parents: tuple[int, ...]) -> None:
    """A row that sees a sibling, or misses an ancestor, makes the target answer for another text."""
    check(parents)
    mask = closure(parents)
    for node in range(len(parents)):
        above = ancestors(parents, node)
        assert np.flatnonzero(mask[node]).tolist() == sorted(above)
        assert depths(parents)[node] == len(above) - 1
        assert path_to(parents, node) == tuple(above)


@given(trees(), st.lists(st.integers(0, 9), max_size=3))
def test_the_tokens_on_the_way_to_every_node(parents: tuple[int, ...], before: list[int]) -> None:
    """A repetition penalty that counts another branch's tokens, or the root's twice, bends the distribution."""
    tokens = [100 + node for node in range(len(parents))]
    ways = paths(parents, tokens, before)
    assert ways == [[*before, *(tokens[i] for i in path_to(parents, node)[1:])] for node in range(len(parents))]
    assert paths(parents, tokens) == [way[len(before) :] for way in ways]


@given(trees())
def test_paths_to_the_leaves_rebuild_the_tree(parents: tuple[int, ...]) -> None:
    """A path that skips or swaps a node would commit the wrong rows."""
    leaves = set(range(len(parents))) - set(parents)
    rebuilt = {0: -1}
    for leaf in leaves:
        rebuilt |= {child: parent for parent, child in itertools.pairwise(path_to(parents, leaf))}
    assert tuple(rebuilt[node] for node in range(len(parents))) == parents


@given(trees(), st.integers(0, 9))
def test_a_chain_in_front_is_seen_by_every_node(parents: tuple[int, ...], length: int) -> None:
    """Pending tokens must come before the root for every branch, in order, and change nothing else."""
    longer = after_chain(length, parents)
    check(longer)
    mask = closure(longer)
    assert mask[length:, :length].all() and (mask[length:, length:] == closure(parents)).all()
    assert is_chain(longer) == is_chain(parents)
    assert depths(longer) == (*range(length), *(depth + length for depth in depths(parents)))


def test_the_cached_mask_cannot_be_changed() -> None:
    """A caller that writes into a cached mask would corrupt every later step of that shape."""
    with pytest.raises(ValueError, match="read-only"):
        closure((-1, 0, 0))[0, 0] = False


@pytest.mark.parametrize("kind", ["chain", "star"])
def test_only_small_masks_are_kept(kind: str) -> None:
    """Sixty-four masks of thousands of nodes, a new shape in every step, would fill the memory of a long session."""
    cpu = torch.device("cpu")
    attention = Attention(choose(cpu, torch.float32, 8), 1, cpu, torch.float32)
    for nodes in (512, 513):
        parents = tuple(range(-1, nodes - 1)) if kind == "chain" else (-1, *[0] * (nodes - 1))
        one, two = (closure(parents) for _ in range(2))
        three, four = (attention.block(parents) for _ in range(2))
        assert (one is two, three is four) == (nodes == 512,) * 2
        assert np.array_equal(one, two) and torch.equal(three, four) and not one.flags.writeable


@pytest.mark.parametrize("parents", [(), (0,), (-1, -1), (-1, 1), (-1, 2, 0), (-1, 0, -2)])
def test_what_is_no_tree_is_refused(parents: tuple[int, ...]) -> None:
    """A cycle, a second root or a forward edge would hang the walk or read a row that is not there."""
    with pytest.raises(ValueError, match="root|earlier"):
        check(parents)


chains = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=6)


def built(guesses: Sequence[Sequence[int]], *, merge: bool) -> Builder:
    """Make a tree of guesses below token 0."""
    tree = Builder(0)
    for guess in guesses:
        tree.chain(guess, ["toy"] * len(guess), merge=merge)
    return tree


def spelled(tree: Builder) -> list[tuple[int, ...]]:
    """Return the tokens on the path to every node, sorted."""
    draft = tree.draft()
    return sorted(tuple(draft.tokens[n] for n in path_to(draft.parents, node)) for node in range(len(tree)))


@given(chains, st.randoms(use_true_random=False))
def test_merging_is_idempotent_and_order_free(guesses: list[list[int]], chance: random.Random) -> None:
    """A trie that depends on the order of its guesses, or grows when told twice, wastes rows of the target."""
    shuffled = chance.sample(guesses, len(guesses))
    once = spelled(built(guesses, merge=True))
    assert spelled(built([*guesses, *shuffled], merge=True)) == once == spelled(built(shuffled, merge=True))
    assert len(set(once)) == len(once)
    assert set(once) == set(spelled(built(guesses, merge=False)))


@given(chains, st.integers(0, 99))
def test_merged_and_disjoint_guesses_emit_the_same(guesses: list[list[int]], seed: int) -> None:
    """Sharing equal beginnings is a saving, never another output."""
    emitted = []
    for merge in (True, False):
        draft = built(guesses, merge=merge).draft()
        paths = [tuple(draft.tokens[n] for n in path_to(draft.parents, node)) for node in range(len(draft.tokens))]
        answers = [int(noise(seed, path, 4).argmax()) for path in paths]
        emitted.append(walk(draft, greedy(answers))[1])
    assert emitted[0] == emitted[1]


def test_unmerged_chains_are_never_shared() -> None:
    """A plain chain must not become part of a trie, nor the other way round."""
    tree = Builder(9)
    first = tree.chain([1, 2], ["a", "b"])
    assert tree.chain([1, 2], ["a", "b"], merge=True) != first
    assert tree.add(5, 0, "cell", Role.EXPLORE) == 5
    draft = tree.draft()
    assert draft.parents == (-1, 0, 1, 0, 3, 0)
    assert draft.roles == (Role.ROOT, *[Role.VERIFY] * 4, Role.EXPLORE)
    with pytest.raises(ValueError, match="shorter|longer"):
        tree.chain([1, 2], ["one source"])
