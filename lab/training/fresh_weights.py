"""Makes the initial weights of a drafter, beside a frozen model."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import torch
from torch import Tensor, nn

SPREAD = 0.02  # of random weights


def fresh_weights(
    sizes: Mapping[str, Sequence[int]], given: Mapping[str, Tensor], silent: Container[str], device: torch.device
) -> dict[str, nn.Parameter]:
    """Draw weights: those that are `given`, ones for norms, zeros for `silent` parts, and random numbers for the rest.

    With its last product zero, a layer adds nothing yet to what it reads.
    """
    weights = dict[str, nn.Parameter]()
    for name, size in sizes.items():
        if name in given:
            start = given[name]
        elif "norm" in name:
            start = torch.ones(*size)
        elif name in silent:
            start = torch.zeros(*size)
        else:
            start = torch.randn(*size) * SPREAD
        weights[name] = nn.Parameter(start.detach().to(device, torch.float32, copy=True))
    return weights
