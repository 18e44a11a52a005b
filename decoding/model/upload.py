"""How small numbers get to a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    Tokens = Sequence[int] | torch.Tensor  # ids on the host, or (n,) ids that only the device knows


def upload(numbers: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Numbers of the host on a device. The host does not wait: from memory that could be moved, it would have to."""
    if device.type == "cpu":
        return numbers
    return numbers.pin_memory().to(device, non_blocking=True)


def write(numbers: torch.Tensor, place: torch.Tensor) -> None:
    """Write numbers of the host to memory of a device, for which the host does not wait."""
    place.copy_(numbers if place.device.type == "cpu" else numbers.pin_memory(), non_blocking=True)


def on_device(tokens: Tokens, device: torch.device) -> torch.Tensor:  # (n,)
    """Tokens as a model reads them."""
    if isinstance(tokens, torch.Tensor):
        return tokens.to(device, non_blocking=True)
    return upload(torch.tensor(tokens, dtype=torch.long), device)
