"""A model of the family as the training loop's learner."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from decoding.types import JSON

from ..training.batches import Batch
from .plans import Recipe

_MULTIPLE = 256  # the numbers of positions that are asked for are padded to multiples of it


class FamilyModel:
    """Learns to write the answers' tokens; with a teacher, to give the teacher's distributions in front of them."""

    distances = 1

    def __init__(self, model: Any, recipe: Recipe, teacher: Any = None) -> None:
        self.model, self.device = model, next(model.parameters()).device
        self._fast = _BFloat16Copy(model, compiled=recipe.compiled)
        self._teacher = None if teacher is None else _BFloat16Copy(teacher, compiled=recipe.compiled)
        # Compiled, it takes 31 ms of processor time instead of 77.
        self._losses = _compiled(_losses, self.device, dynamic=True) if recipe.compiled else _losses
        self.about: Mapping[str, JSON] = {"kind": "family", **asdict(recipe)}

    def learn(self, batch: Batch, counts: Tensor, share: float) -> dict[str, float]:
        """Add the gradients of a batch to the weights; the mean loss per learnt token, in nats."""
        self._fast.copy_weights(self.model)
        places, labels = batch.labels(1)
        padded = _padded(places)
        logits = self._fast.logits(batch, padded)
        wanted = _padded(labels[:, 0])
        if self._teacher is not None:
            with torch.no_grad():
                wanted = self._teacher.logits(batch, padded)
        loss: Tensor = self._losses(logits, wanted)[: len(places)].sum() / counts[0]
        loss.backward()  # type: ignore[no-untyped-call]
        self._fast.move_gradients(self.model)
        return {"loss": loss.item()}


class _BFloat16Copy:
    """A model's copy in bfloat16, which computes; the weights that learn stay in float32.

    Half the memory to move in every step.
    """

    def __init__(self, model: Any, *, compiled: bool) -> None:
        self._model = copy.deepcopy(model).to(torch.bfloat16)
        device = next(model.parameters()).device
        self._body = _compiled(self._model.model, device, dynamic=False) if compiled else self._model.model

    def logits(self, batch: Batch, places: Tensor) -> Tensor:
        """Return the logits at some flat positions only: the output layer is a fifth of the work."""
        hidden = self._body(input_ids=batch.ids, position_ids=batch.positions, use_cache=False).last_hidden_state
        logits: Tensor = self._model.lm_head(hidden.flatten(0, 1)[places])
        return logits

    def move_gradients(self, model: Any) -> None:
        """Add the gradients to those of the weights that learn."""
        for ours, theirs in zip(self._model.parameters(), model.parameters(), strict=True):
            if ours.grad is not None:
                theirs.grad = ours.grad.float() if theirs.grad is None else theirs.grad + ours.grad
            ours.grad = None

    @torch.no_grad()
    def copy_weights(self, model: Any) -> None:
        """Copy the weights that learn."""
        for ours, theirs in zip(self._model.parameters(), model.parameters(), strict=True):
            ours.copy_(theirs)


def _losses(logits: Tensor, wanted: Tensor) -> Tensor:
    """Return the loss of every row, in float32: against tokens, or against a teacher's logits."""
    wanted = wanted.float().softmax(-1) if wanted.is_floating_point() else wanted
    return functional.cross_entropy(logits.float(), wanted, reduction="none")


def _padded(places: Tensor) -> Tensor:
    """Pad with zeros to one of few lengths: for every new one a kernel would be made, and cached."""
    return functional.pad(places, (0, -len(places) % _MULTIPLE))


def _compiled(work: Any, device: torch.device, *, dynamic: bool) -> Any:
    """Compile a function if the machine can."""
    can = device.type == "cuda" or shutil.which(os.environ.get("CXX", "g++")) is not None
    return torch.compile(work, dynamic=dynamic) if can else work
