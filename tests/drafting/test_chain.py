"""A chain of drafted tokens as a draft."""

from __future__ import annotations

import torch

from decoding.drafting.chain import Chain


def test_a_chain_carries_its_distributions_and_its_branches_none() -> None:
    """A q at the wrong node would have the engine test one token by the chances of another."""
    q = [torch.tensor([0.5, 0.5]), torch.tensor([0.1, 0.9])]
    chain = Chain([1, 0], [*q])
    tree = chain.tree(7, "draft")
    tree.chain((1, 1), ["pool:0,0", "pool:0,1"], len(chain))
    tree.chain((0,), ["pool:1,0"], len(chain))
    draft = chain.draft(tree)
    assert draft.tokens == (7, 1, 0, 1, 1, 0)
    assert draft.parents == (-1, 0, 1, 2, 3, 2)
    assert draft.sources[:3] == ("root", "draft:1", "draft:2")
    assert draft.q is not None and [row is None for row in draft.q] == [True, False, False, True, True, True]
    assert draft.q[1] is q[0] and draft.q[2] is q[1]


def test_an_empty_chain_is_the_root() -> None:
    """A drafter that was interrupted at once has nothing to say."""
    draft = Chain().draft(Chain().tree(3, "draft"))
    assert draft.tokens == (3,) and draft.q == (None,)
