"""Trees whose shape only the device knows are read as those that the host knows."""

from __future__ import annotations

import random

import pytest
import torch

from decoding.model.captured import PassRows, StepBuffer
from decoding.model.queued_tree import QueuedTree, deepest, on_host, put_after_chain
from decoding.model.transformers_pass import ModulePass
from decoding.tree import after_chain, closure, depths
from tests.families import machine

CPU = torch.device("cpu")
TREE = (-1, 0, 0, 1, 1, 3, 2, 6)


def some_tree(seed: int) -> tuple[int, ...]:
    dice = random.Random(seed)
    return (-1, *(dice.randrange(node) for node in range(1, dice.randrange(1, 20))))


def same(tree: QueuedTree, parents: tuple[int, ...]) -> bool:
    seen, below = torch.tensor(closure(parents)), torch.tensor(depths(parents))
    return on_host(tree) == parents and bool((tree.seen == seen).all() and (tree.depths == below).all())


@pytest.mark.parametrize("seed", range(8))
def test_closure_and_depths_are_those_of_the_parents(seed: int) -> None:
    """With a bound that is deeper than the tree as well."""
    parents = some_tree(seed)
    for spare in (0, 3):
        tree = QueuedTree.of(torch.tensor(parents), max(depths(parents)) + spare)
        assert same(tree, parents) and len(tree) == len(parents)
        for length in (1, 4):
            assert same(tree.after_chain(length), after_chain(length, parents))
            assert deepest(put_after_chain(length, tree)) == deepest(tree) + length


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_grows_level_by_level(seed: int) -> None:
    dice, tree, parents, level = random.Random(seed), QueuedTree.nothing(CPU), list[int](), [-1]
    for _ in range(4):
        fresh = [dice.choice(level) for _ in range(dice.randrange(1, 5))]
        tree, level = tree.grown(torch.tensor(fresh)), [*range(len(parents), len(parents) + len(fresh))]
        parents += fresh
        assert same(tree, tuple(parents)) and deepest(tree) == max(depths(tuple(parents)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2-mixed"])
def test_a_session_reads_it_as_a_tree_that_the_host_knows(family: str, dtype: torch.dtype) -> None:
    """Also where windows end inside of the tree, and in compiled code."""
    model = machine(family, torch.empty(0, dtype=dtype)).model
    session, tokens = model.open(64, 16), [3, 1, 4, 1, 5, 9, 2, 6]
    for _ in range(4):
        tree = QueuedTree.of(torch.tensor(TREE), 5)
        wanted, got = (session.read(torch.tensor(tokens), parents).logits for parents in (TREE, tree))
        assert torch.allclose(got, wanted, atol=1e-12 if dtype == torch.float64 else 1e-5)
        session.commit([0, 1, 3, 5])


def test_a_buffer_of_a_captured_step_holds_the_same() -> None:
    buffers = [StepBuffer(11, CPU) for _ in range(2)]
    for buffer, parents in zip(buffers, (TREE, QueuedTree.of(torch.tensor(TREE), 4)), strict=True):
        step = PassRows(torch.arange(len(TREE)), parents, 300)
        buffer.fill(step)
        buffer.take(step)
    one, other = buffers
    for name in ("ids", "positions", "slots", "seen"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


def test_a_pass_of_a_transformers_model_shows_the_same() -> None:
    one, other = (ModulePass(None, parents, None, CPU) for parents in (TREE, QueuedTree.of(torch.tensor(TREE), 4)))
    assert torch.equal(one.positions, other.positions)
    assert torch.equal(*(step.mask(lambda batch, head, row, key: row >= key, None) for step in (one, other)))
