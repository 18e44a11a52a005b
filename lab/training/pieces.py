"""Computes the gradients of a loss over many rows, with the logits of only a few of them in memory at a time."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def learn_in_pieces(rows: Tensor, size: int, loss_of: Callable[[Tensor, slice], Tensor]) -> tuple[float, Tensor]:
    """Add up a loss over `size` rows at a time; return it and its gradient by the rows.

    `loss_of` takes rows that are a leaf of their own, and where they are. Weights that it uses get their gradients.
    """
    total, gradients = 0.0, [rows.new_zeros(0, *rows.shape[1:])]
    for begin in range(0, len(rows), size):
        piece = slice(begin, begin + size)
        leaf = rows[piece].detach().requires_grad_()
        loss = loss_of(leaf, piece)
        loss.backward()  # type: ignore[no-untyped-call]
        assert leaf.grad is not None
        gradients.append(leaf.grad)
        total += float(loss.detach())
    return total, torch.cat(gradients)
