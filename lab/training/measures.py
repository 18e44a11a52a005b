"""Measures drafts and models on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from .backbone import Backbone
from .batches import Batch


def rank_of(logits: Tensor, tokens: Tensor) -> Tensor:  # (N, V), (N,) -> (N,)
    """Return the rank of each row's token, from 0; of equals the lowest id comes first."""
    value = logits.gather(1, tokens[:, None])
    ids = torch.arange(logits.shape[1], device=logits.device)
    before = (logits > value) | ((logits == value) & (ids < tokens[:, None]))
    return before.sum(1)


def overlap(logits: Tensor, p: Tensor) -> float:  # (N, V), (N, V)
    """Return how many of N tokens drawn from softmax(logits) the target's p would accept: the sum of min(p, q)."""
    return float(torch.minimum(logits.softmax(-1), p).sum())


@torch.no_grad()
def measure_model(backbone: Backbone, batches: Sequence[Batch]) -> tuple[dict[str, float], list[int]]:
    """Return the loss on the answers' tokens and the share that are the greedy choice; and all greedy choices."""
    loss, right = 0.0, 0
    choices: list[int] = []
    for batch in batches:
        place = batch.to(backbone.device)
        places, labels = place.labels(1)
        hidden = backbone.read(place).final.flatten(0, 1)[places]
        for part, wanted in zip(
            *(torch.split(each, backbone.logit_rows) for each in (hidden, labels[:, 0])), strict=True
        ):
            logits = backbone.logits(part)
            loss += float(functional.cross_entropy(logits, wanted, reduction="sum"))
            chosen = logits.argmax(-1)
            right += int((chosen == wanted).sum())
            choices += chosen.tolist()
    count = max(1, len(choices))
    return {"loss": loss / count, "right": right / count}, choices


def agreement(one: Sequence[int], other: Sequence[int]) -> float:
    """Return the share of positions at which two models choose the same token."""
    return sum(a == b for a, b in zip(one, other, strict=True)) / max(1, len(one))
