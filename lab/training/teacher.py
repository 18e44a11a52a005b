"""Caches the predictions of a frozen model: every epoch needs those of the same lines."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .backbone import Backbone
from .batches import Batch

TOP = 24  # likeliest tokens of a position that are remembered


class Likeliest(NamedTuple):
    """The model's likeliest next tokens at the positions whose next token is learnt, line by line."""

    tokens: Tensor  # (N, TOP)
    shares: Tensor  # (N, TOP) their probabilities, which sum to one


class Teacher:
    """A backbone that reads each line once. A line takes some 100 bytes a token."""

    def __init__(self, backbone: Backbone) -> None:
        self._backbone = backbone
        self._remembered: dict[bytes, Likeliest] = {}

    @torch.no_grad()
    def predict(self, batch: Batch) -> Likeliest:
        """Return the model's likeliest next tokens, in the order of `Batch.labels`."""
        lines = [self._line(line) for line in batch.parts(1)]
        tokens, shares = (torch.cat(parts).to(batch.ids.device) for parts in zip(*lines, strict=True))
        return Likeliest(tokens.long(), shares.float())

    def _line(self, line: Batch) -> Likeliest:
        # Line by line, so that what is remembered does not depend on the batch that asked first.
        key = torch.cat((line.ids, line.positions, line.learnt.long())).cpu().numpy().tobytes()
        if key not in self._remembered:
            places, _ = line.labels(1)
            hidden = self._backbone.read(line).final.flatten(0, 1)[places]
            best = [self._backbone.logits(part).topk(TOP) for part in torch.split(hidden, self._backbone.logit_rows)]
            tokens = torch.cat([part.indices for part in best])
            shares = torch.cat([part.values for part in best]).softmax(-1)
            self._remembered[key] = Likeliest(tokens.int().cpu(), shares.half().cpu())
        return self._remembered[key]
