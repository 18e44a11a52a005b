"""Copies small numbers to a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    Tokens = Sequence[int] | torch.Tensor  # ids on the host, or (n,) ids that only the device knows


def upload(numbers: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy numbers from the host to a device, through pinned memory, so that the host does not wait."""
    if device.type == "cpu":
        return numbers
    return numbers.pin_memory().to(device, non_blocking=True)


def write_from_host(numbers: torch.Tensor, memory: torch.Tensor) -> None:
    """Write numbers from the host to a device's memory, without waiting."""
    memory.copy_(numbers if memory.device.type == "cpu" else numbers.pin_memory(), non_blocking=True)


def on_device(tokens: Tokens, device: torch.device) -> torch.Tensor:  # (n,)
    """Return token ids as a tensor on a device."""
    if isinstance(tokens, torch.Tensor):
        return tokens.to(device, non_blocking=True)
    return upload(torch.tensor(tokens, dtype=torch.long), device)
