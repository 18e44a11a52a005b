"""Optimizers with their learning-rate schedules: which weights learn, and how one update moves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, pi
from typing import Protocol

import torch
from torch import Tensor, nn

from decoding.types import JSON

_CLIP = 1.0  # the norm at which a group's gradient is clipped
_WARM_UP, _FALLING = 60, 0.45  # of a plateau: steps until the full rate, and the share of the steps in which it falls


class Optimizer(Protocol):
    """The interface of an optimizer for the training loop."""

    about: Mapping[str, JSON]  # settings that must be the same where a training is resumed
    weights: Mapping[str, nn.Parameter]  # all that learn, by the names that they have in a checkpoint

    def step(self, step: int, steps: int) -> None:
        """Clip each group by itself, so that a large gradient in one does not shrink the others' updates."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Return all that a checkpoint needs besides the weights, by name."""
        ...

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take over the state of a checkpoint."""
        ...


@dataclass(frozen=True, slots=True)
class Group:
    """Weights that learn at one rate."""

    weights: Mapping[str, nn.Parameter]
    rate: float
    start: float = 0.0  # the share of the training before which they stay frozen


class GroupedAdamW:
    """AdamW over groups of weights, each with its own rate on a cosine schedule and its own gradient clipping."""

    def __init__(self, groups: Mapping[str, Group], warm_up: int) -> None:
        """Start with `warm_up` steps until the full rate."""
        self._groups, self._warm_up = list(groups.values()), warm_up
        self.about: Mapping[str, JSON] = {"warm_up": warm_up, "clip": _CLIP}
        self.weights: Mapping[str, nn.Parameter] = {
            f"{name}/{key}": weight for name, group in groups.items() for key, weight in group.weights.items()
        }
        self._adam = torch.optim.AdamW(
            [{"params": [*group.weights.values()]} for group in self._groups], betas=(0.9, 0.95), weight_decay=0.0
        )

    def step(self, step: int, steps: int) -> None:
        """Step both at the same share of their full rates."""
        for group, settings in zip(self._groups, self._adam.param_groups, strict=True):
            settings["lr"] = group.rate * cosine_share(step, steps, self._warm_up, group.start)
            if step / steps < group.start:
                for weight in group.weights.values():
                    weight.grad = None
            nn.utils.clip_grad_norm_([*group.weights.values()], _CLIP)
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Return the state by the index of the weight and the name of the number."""
        return _state(self._adam)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take over the state of a checkpoint."""
        _restore(self._adam, state)


class MuonWithAdamW:
    """Muon for the matrices inside the layers, AdamW for embeddings, output layer and norms; one schedule for both.

    Muon makes the update of a matrix orthogonal, so that directions which few tokens ask for move as far as common
    ones: a small model learns in about half the steps.
    """

    def __init__(self, model: nn.Module, muon_rate: float, adam_rate: float) -> None:
        matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and ".layers." in name]
        inside = {id(p) for p in matrices}
        others = [p for p in model.parameters() if id(p) not in inside]
        self.about: Mapping[str, JSON] = {"muon_rate": muon_rate, "adam_rate": adam_rate}
        self.weights: Mapping[str, nn.Parameter] = dict(model.named_parameters())
        self._rates = (muon_rate, adam_rate)
        self._both: tuple[torch.optim.Optimizer, ...] = (
            torch.optim.Muon(matrices, lr=muon_rate, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=adam_rate, betas=(0.9, 0.97), weight_decay=0.0),
        )

    def step(self, step: int, steps: int) -> None:
        """Both at the same share of their full rates."""
        for optimizer, rate in zip(self._both, self._rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * plateau_share(step, steps)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Return the state by the number of the optimizer, the index of the weight and the name of the number."""
        return {
            f"{which}/{name}": tensor
            for which, optimizer in enumerate(self._both)
            for name, tensor in _state(optimizer).items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take over the state of a checkpoint."""
        for which, optimizer in enumerate(self._both):
            prefix = f"{which}/"
            _restore(optimizer, {name.removeprefix(prefix): t for name, t in state.items() if name.startswith(prefix)})


def cosine_share(step: int, steps: int, warm_up: int, start: float = 0.0) -> float:
    """Return the share of the full rate: a linear rise, then half a cosine to zero, from the share `start` on."""
    first = start * steps
    done = max(0.0, step - first)
    rise = min(1.0, (done + 1) / max(1, warm_up))
    return rise * 0.5 * (1 + cos(pi * done / max(1.0, steps - first)))


def plateau_share(step: int, steps: int) -> float:
    """Return the share of the full rate: a short rise, a plateau, and a linear fall to zero over the last part."""
    rise = min(1.0, (step + 1) / max(1, min(_WARM_UP, steps // 10)))
    return min(rise, (steps - step) / max(1.0, steps * _FALLING))


def _state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{index}/{name}": torch.as_tensor(value)
        for index, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def _restore(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, _, name = key.partition("/")
        state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
