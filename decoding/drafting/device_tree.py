"""A tree of guesses that grows on a device, while the host knows none of its numbers.

Every level has a fixed number of guesses: those that the bounds exclude stay as dead guesses, after all others.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..model.queued_tree import QueuedTree

# Read the guesses of a level, each by its parent's row in the last level and its token; without guesses, the root.
# Return the likeliest tokens after each, and their probabilities, (R, k) each.
ReadLevel = Callable[[torch.Tensor, torch.Tensor, int], tuple[torch.Tensor, torch.Tensor]]


class DeviceTree:
    """A tree of guesses with the methods of `GuessTree`."""

    kept: torch.Tensor  # (n,) the tokens of the best guesses
    tree: QueuedTree  # of the root and these; dead guesses are at its end

    def __init__(self, read: ReadLevel, ends: torch.Tensor, interrupted: Callable[[], bool]) -> None:
        """`ends`: the tokens that end a text, (E,)."""
        self.tokens, self.chances = list[torch.Tensor](), list[torch.Tensor]()  # of every level, (R, k) each
        self._read, self._ends, self._interrupted = read, ends, interrupted
        self._products, self._alive, self._above = list[torch.Tensor](), list[torch.Tensor](), list[torch.Tensor]()
        # The guesses of the level that is read next, (R,) each:
        self._rows = self._newest = torch.empty(0, dtype=torch.long, device=ends.device)
        self._product = torch.ones(1, dtype=torch.float64, device=ends.device)
        self._expanded = torch.ones(1, dtype=torch.bool, device=ends.device)
        self._parents = torch.full((1,), -1, dtype=torch.long, device=ends.device)
        self._made = 0

    def branch(self, k: int) -> None:
        """Queue the reading of the level, and add the `k` likeliest tokens after each of its guesses."""
        tokens, chances = self._read(self._rows, self._newest, k)
        self.tokens.append(tokens)
        self.chances.append(chances)
        self._products.append(self._product[:, None] * chances)
        self._alive.append(self._expanded[:, None].expand_as(tokens))
        self._above.append(self._parents[:, None].expand_as(tokens))

    def descend(self, k: int, least: float) -> bool:
        """Choose the next level; False if interrupted."""
        if self._interrupted():
            return False
        tokens, products = self.tokens[-1], self._products[-1]
        alive = self._alive[-1] & (products >= least) & (tokens[..., None] != self._ends).all(-1)
        chosen = _largest(products.flatten(), alive.flatten(), k)
        self._product, self._expanded = (each.flatten().index_select(0, chosen) for each in (products, alive))
        self._parents = chosen + self._made
        self._made += products.numel()
        self._rows, self._newest = chosen // products.shape[1], tokens.flatten().index_select(0, chosen)
        return True

    def keep(self, count: int, least: float) -> None:
        """Keep the guesses with the largest products."""
        tokens, products, alive, above = (
            torch.cat([level.flatten() for level in levels])
            for levels in (self.tokens, self._products, self._alive, self._above)
        )
        order = _largest(products, alive & (products >= least), count)
        nodes = order.new_zeros(len(tokens) + 1)  # of the root, and of all guesses
        nodes = nodes.index_copy(0, order + 1, torch.arange(1, len(order) + 1, device=order.device))
        parents = nodes.index_select(0, above.index_select(0, order) + 1)
        root = torch.full_like(parents[:1], -1)
        self.kept = tokens.index_select(0, order)
        self.tree = QueuedTree.of(torch.cat((root, parents)), len(self.tokens))


def _largest(products: torch.Tensor, alive: torch.Tensor, count: int) -> torch.Tensor:  # (n,) twice -> (at most count,)
    """Return the indices of the largest live products, ascending; dead ones after them make up `count`."""
    size = len(products)
    order = torch.where(alive, products, -1.0).sort(descending=True, stable=True).indices[:count]
    return (order + size * ~alive.index_select(0, order)).sort().values % size
