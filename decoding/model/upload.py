"""Copies small numbers to a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    Tokens = Sequence[int] | torch.Tensor  # ids on the host, or (n,) ids that only the device knows


def upload(numbers: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy numbers of the host to a device. The host does not wait, as it would for memory that is not pinned."""
    if device.type == "cpu":
        return numbers
    return numbers.pin_memory().to(device, non_blocking=True)


def write_from_host(numbers: torch.Tensor, memory: torch.Tensor) -> None:
    """Write numbers of the host to memory of a device, for which the host does not wait."""
    memory.copy_(numbers if memory.device.type == "cpu" else numbers.pin_memory(), non_blocking=True)


def on_device(tokens: Tokens, device: torch.device) -> torch.Tensor:  # (n,)
    """Return tokens as a model reads them."""
    if isinstance(tokens, torch.Tensor):
        return tokens.to(device, non_blocking=True)
    return upload(torch.tensor(tokens, dtype=torch.long), device)
