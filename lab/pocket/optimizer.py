"""Muon for the matrices inside the layers, AdamW for embeddings, output layer and norms; one schedule for both."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Optimizers:
    """Both optimizers, driven as one.

    Muon makes the update of a matrix orthogonal, so that directions which few tokens ask for move as far as common
    ones: a small model learns in about half the steps.
    """

    def __init__(self, model: nn.Module, muon_rate: float, adam_rate: float) -> None:
        matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and ".layers." in name]
        inside = {id(p) for p in matrices}
        others = [p for p in model.parameters() if id(p) not in inside]
        self._rates = (muon_rate, adam_rate)
        self._both: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(matrices, lr=muon_rate, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=adam_rate, betas=(0.9, 0.97), weight_decay=0.0),
        )

    def step(self, share: float) -> None:
        """One update at this share of the full rates; the gradients are spent."""
        for optimizer, rate in zip(self._both, self._rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * share
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint keeps, by name: which optimizer, which of its weights, which number."""
        return {
            f"{which}/{index}/{name}": torch.as_tensor(value)
            for which, optimizer in enumerate(self._both)
            for index, values in optimizer.state_dict()["state"].items()
            for name, value in values.items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint's state."""
        states: list[dict[int, dict[str, Tensor]]] = [{} for _ in self._both]
        for key, tensor in tensors.items():
            which, index, name = key.split("/")
            states[int(which)].setdefault(int(index), {})[name] = tensor
        for optimizer, state in zip(self._both, states, strict=True):
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def rate_share(step: int, steps: int, *, warm_up: int = 60, falling: float = 0.45) -> float:
    """The share of the full rate: a short rise, a plateau, and a straight fall to nothing over the last part."""
    rise = min(1.0, (step + 1) / max(1, min(warm_up, steps // 10)))
    return min(rise, (steps - step) / max(1.0, steps * falling))
