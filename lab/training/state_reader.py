"""Reads what a frozen model's layers say of a batch: of lines that come again, once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from decoding.model.memory import free_memory

from .backbone import Backbone
from .batches import Batch

_SHARE = 4  # of the free memory: one part in so many holds states
_USUAL = 2**33  # bytes, where the system does not report how many are free


class StateReader:
    """The final states of a backbone, and those that enter some layers."""

    def __init__(self, backbone: Backbone, layers: Sequence[int], *, remembers: bool) -> None:
        """With `remembers`, keep the states of lines as long as there is room for them."""
        self._backbone, self._layers = backbone, layers
        self._room = (free_memory(torch.device("cpu")) or _USUAL) // _SHARE
        self._remembered: dict[bytes, tuple[Tensor, Tensor]] = {}
        self._remembers = remembers

    def read(self, batch: Batch) -> tuple[Tensor, Tensor]:  # (lines, length, H), (lines, length, layers * H)
        """Return the final states, and those that enter the layers, side by side."""
        if not self._remembers:
            return self._states(batch)
        # Line by line, so that what is remembered does not depend on the batch that asked first.
        final, entering = (torch.cat(parts) for parts in zip(*map(self._line, batch.parts(1)), strict=True))
        return final.to(batch.ids.device), entering.to(batch.ids.device)

    def _line(self, line: Batch) -> tuple[Tensor, Tensor]:
        key = torch.cat((line.ids, line.positions)).cpu().numpy().tobytes()
        if key in self._remembered:
            return self._remembered[key]
        states = self._states(line)
        self._room -= sum(each.nbytes for each in states)
        if self._room >= 0:
            final, entering = states
            self._remembered[key] = final.cpu(), entering.cpu()
        return states

    def _states(self, batch: Batch) -> tuple[Tensor, Tensor]:
        final, entering = self._backbone.read(batch, layers=self._layers)
        assert entering is not None
        return final, entering
