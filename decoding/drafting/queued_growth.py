"""A tree of guesses that grows on a device by the rules of `guess_tree`, of whose outcome the host knows nothing.

Every level has a fixed number of guesses. What the rules exclude is there all the same, dead, behind what they do not.
The host goes by the rules again once it has the numbers, and so finds out which guesses are alive.
"""

from __future__ import annotations

import torch

from ..model.queued_tree import QueuedTree
from .guess_tree import Form


class QueuedGrowth:
    """The numbers of a tree, level by level."""

    def __init__(self, form: Form, device: torch.device) -> None:
        self._form = form
        self.tokens, self.chances = list[torch.Tensor](), list[torch.Tensor]()  # of every level, (R, k) each
        self._products, self._alive, self._above = list[torch.Tensor](), list[torch.Tensor](), list[torch.Tensor]()
        # Of the guesses that the next level stands behind, (R,) each:
        self._product = torch.ones(1, dtype=torch.float64, device=device)
        self._expanded = torch.ones(1, dtype=torch.bool, device=device)
        self._parents = torch.full((1,), -1, dtype=torch.long, device=device)
        self._made = 0

    def add(self, tokens: torch.Tensor, chances: torch.Tensor) -> None:  # (R, k) each
        """A level: what stands behind the root, or behind each of the guesses that were chosen."""
        self.tokens.append(tokens)
        self.chances.append(chances)
        self._products.append(self._product[:, None] * chances)
        self._alive.append(self._expanded[:, None].expand_as(tokens))
        self._above.append(self._parents[:, None].expand_as(tokens))

    def choose(self, ends: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # (E,) -> (n,), (n,)
        """Choose the guesses of the last level that the next one stands behind: the row of each in it, and its token.

        `ends`: the tokens that end a text.
        """
        tokens, products = self.tokens[-1], self._products[-1]
        alive = self._alive[-1] & (products >= self._form.bound) & (tokens[..., None] != ends).all(-1)
        chosen = _largest(products.flatten(), alive.flatten(), self._form.k)
        self._product, self._expanded = (each.flatten().index_select(0, chosen) for each in (products, alive))
        self._parents = chosen + self._made
        self._made += products.numel()
        return chosen // products.shape[1], tokens.flatten().index_select(0, chosen)

    def best(self) -> tuple[torch.Tensor, QueuedTree]:
        """The tokens of the best guesses, (n,), and the tree of them behind a root; dead ones stand at its end."""
        tokens, products, alive, above = (
            torch.cat([level.flatten() for level in levels])
            for levels in (self.tokens, self._products, self._alive, self._above)
        )
        order = _largest(products, alive & (products >= self._form.least), self._form.most)
        places = order.new_zeros(len(tokens) + 1)  # of the root, and of all guesses
        places = places.index_copy(0, order + 1, torch.arange(1, len(order) + 1, device=order.device))
        parents = places.index_select(0, above.index_select(0, order) + 1)
        root = torch.full_like(parents[:1], -1)
        return tokens.index_select(0, order), QueuedTree.of(torch.cat((root, parents)), len(self.tokens))


def _largest(products: torch.Tensor, alive: torch.Tensor, count: int) -> torch.Tensor:  # (n,) twice -> (at most count,)
    """The places of the largest products that are alive, in their order; dead ones behind them fill it up."""
    size = len(products)
    order = torch.where(alive, products, -1.0).sort(descending=True, stable=True).indices[:count]
    return (order + size * ~alive.index_select(0, order)).sort().values % size
