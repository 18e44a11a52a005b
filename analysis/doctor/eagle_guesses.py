"""Computes the guesses of an EAGLE-3 drafter, with every entry of its wiring as a parameter.

Guesses are made at all positions of a text at once: one pass of the layer over the text, and one for every further
guess. In the latter each position has its own row, which sees the text up to there and the guesses before it: only
right ones, since the others are not followed. `EagleSession` computes the same for one position after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from decoding.model.kernels import by_torch
from decoding.model.rope import RopeTables
from decoding.parts.layer_math import attend

if TYPE_CHECKING:
    from decoding.parts.eagle import Block

    from .eagle import ExaminedEagle
    from .feature_probes import FeatureWiring
    from .texts import Text


class EagleGuesses:
    """One wiring on one text."""

    def __init__(self, examined: ExaminedEagle, wiring: FeatureWiring, text: Text, places: Sequence[int]) -> None:
        self._examined, self._wiring = examined, wiring
        self._block: Block = examined.block(wiring)
        device = text.hidden.device
        self._ids = torch.tensor(text.ids, device=device)
        self._roots = torch.tensor([*places], device=device)
        self._states = examined.states(wiring, text, places[-1])
        self._tables = examined.rope(wiring).tables(1, len(text.ids) + len(places) + 2)
        self._keys, self._values = list[torch.Tensor](), list[torch.Tensor]()  # (n, kv_heads, D), text first
        self._at = list[torch.Tensor]()  # the positions of those rows

    def guess(self, depth: int) -> torch.Tensor:  # (P, depth)
        """Write a chain at every position."""
        wiring, roots = self._wiring, self._roots
        final, feature = self._read()
        guesses = torch.full((len(roots), depth), -1, device=roots.device)
        going = torch.arange(len(roots), device=roots.device)  # the chains that were right so far
        for ahead in range(depth):
            if ahead:
                where = roots[going] + ahead
                final, feature = self._run(self._ids[where], feature, where + wiring.draft_shift, roots[going])
            guesses[going, ahead] = self._examined.say(wiring, final)
            right = guesses[going, ahead] == self._ids[roots[going] + ahead + 1]
            going, final, feature = going[right], final[right], feature[right]
            for level in (self._keys, self._values, self._at):
                level[1:] = [each[right] for each in level[1:]]
            if not len(going):
                break
        return guesses

    def first(self) -> torch.Tensor:  # (P, H)
        """Return the output layer's input for the first guess at every position."""
        return self._read()[0]

    def _read(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Read the text; return what `_run` does for the row of every position."""
        last = int(self._roots[-1])
        tokens, states = self._ids[1 : last + 1], self._states
        rows = torch.arange(1, last + 1, device=states.device)  # a row's position is that of its token
        final, feature = self._run(tokens, self._block.fuse(states), rows, rows)
        return final[self._roots - 1], feature[self._roots - 1]

    def _run(
        self, tokens: torch.Tensor, feature: torch.Tensor, where: torch.Tensor, roots: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run a row for every token: its position, and how far it sees the text."""
        turn = RopeTables(*(table[where.clamp(min=0)] for table in self._tables))
        embedded = self._examined.embed(self._wiring, tokens)
        x = self._block.forward(embedded, feature, lambda qkv: self._attend(qkv, turn, where, roots))
        return self._block.leave(x)

    def _attend(self, qkv: torch.Tensor, turn: RopeTables, where: torch.Tensor, roots: torch.Tensor) -> torch.Tensor:
        query, key, value = self._block.split(qkv, turn)
        self._keys.append(key)
        self._values.append(value)
        self._at.append(where)
        itself = torch.eye(len(where), dtype=torch.bool, device=where.device)
        seen = torch.cat((self._at[0] <= roots[:, None], *[itself] * (len(self._keys) - 1)), 1)
        if window := self._wiring.config.window:
            seen &= torch.cat(self._at) > where[:, None] - window
        keys, values = torch.cat(self._keys), torch.cat(self._values)
        return attend(query[None], keys[None], values[None], seen[None], by_torch)[0]
