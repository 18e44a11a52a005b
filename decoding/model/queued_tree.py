"""The shape of a step's tree, whose parents may be on the device alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch

from ..tree import after_chain, closure, depths
from .upload import upload


@dataclass(frozen=True, slots=True, eq=False)
class QueuedTree:
    """A tree on the device: the host only knows the number of nodes and a bound on their depth."""

    parents: torch.Tensor  # (T,), -1 at the root
    depths: torch.Tensor  # (T,)
    seen: torch.Tensor  # (T, T) a node's ancestors and itself: the closure
    deepest: int  # a bound on the nodes' depth

    @classmethod
    def of(cls, parents: torch.Tensor, deepest: int) -> Self:
        """Make the tree of these parents, whose nodes are at most `deepest` deep."""
        above = at = parents.clamp(min=0)  # the root is its own parent
        seen = torch.eye(len(parents), dtype=torch.bool, device=parents.device)
        for _ in range(deepest):
            seen = seen.scatter(1, at[:, None], True)
            at = above.index_select(0, at)
        return cls(parents, seen.sum(1) - 1, seen, deepest)

    @classmethod
    def nothing(cls, device: torch.device) -> Self:
        """Make a tree without nodes."""
        none = torch.empty(0, dtype=torch.long, device=device)
        return cls(none, none, torch.empty(0, 0, dtype=torch.bool, device=device), -1)

    @classmethod
    def chain(cls, length: int, device: torch.device) -> Self:
        """Make a tree in which every node is the child of the one before it."""
        nodes = torch.arange(length, device=device)
        seen = torch.ones(length, length, dtype=torch.bool, device=device).tril()
        return cls(nodes - 1, nodes, seen, length - 1)

    def grown(self, parents: torch.Tensor) -> QueuedTree:  # (n,)
        """Add a level of nodes; a parent is an earlier node, or -1 for the text before the tree."""
        count, fresh = len(self), len(parents)
        above = torch.cat((self.seen.new_zeros(1, count), self.seen)).index_select(0, parents + 1)
        itself = torch.eye(fresh, dtype=torch.bool, device=parents.device)
        seen = torch.cat((torch.cat((self.seen, self.seen.new_zeros(count, fresh)), 1), torch.cat((above, itself), 1)))
        below = torch.cat((self.depths, above.sum(1)))
        return QueuedTree(torch.cat((self.parents, parents)), below, seen, self.deepest + 1)

    def __len__(self) -> int:
        return len(self.parents)

    def on(self, device: torch.device) -> QueuedTree:
        """Copy the tree to another device; the host does not wait."""
        parents, below, seen = (x.to(device, non_blocking=True) for x in (self.parents, self.depths, self.seen))
        return QueuedTree(parents, below, seen, self.deepest)

    def after_chain(self, length: int) -> QueuedTree:
        """Put a chain of `length` nodes before the root."""
        chain = torch.arange(length, device=self.parents.device)
        parents = torch.cat((chain - 1, torch.where(self.parents < 0, length - 1, self.parents + length)))
        seen = self.seen.new_zeros(len(parents), len(parents))
        seen[:, :length] = True
        seen[:length, :length].tril_()
        seen[length:, length:] = self.seen
        return QueuedTree(parents, torch.cat((chain, self.depths + length)), seen, self.deepest + length)


Parents = tuple[int, ...] | QueuedTree


def deepest(parents: Parents) -> int:
    """Return the depth of a tree's deepest node, or a bound on it."""
    return parents.deepest if isinstance(parents, QueuedTree) else max(depths(parents))


def depths_on(parents: Parents, device: torch.device) -> torch.Tensor:  # (T,)
    """Return the depth of every node."""
    if isinstance(parents, QueuedTree):
        return parents.depths.to(device, non_blocking=True)
    return upload(torch.tensor(depths(parents)), device)


def closure_on(parents: Parents, device: torch.device) -> torch.Tensor:  # (T, T)
    """Return which nodes every node sees: its ancestors and itself."""
    if isinstance(parents, QueuedTree):
        return parents.seen.to(device, non_blocking=True)
    return upload(torch.tensor(closure(parents)), device)


def put_after_chain(length: int, parents: Parents) -> Parents:
    """Put a chain of `length` nodes before a tree's root."""
    return parents.after_chain(length) if isinstance(parents, QueuedTree) else after_chain(length, parents)


def on_host(parents: Parents) -> tuple[int, ...]:
    """Return the parents on the host, which on a CPU need not wait for them."""
    return tuple(parents.parents.tolist()) if isinstance(parents, QueuedTree) else parents
