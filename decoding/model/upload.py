"""How small numbers get to a device."""

from __future__ import annotations

import torch


def upload(numbers: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Numbers of the host on a device. The host does not wait: from memory that could be moved, it would have to."""
    if device.type == "cpu":
        return numbers
    return numbers.pin_memory().to(device, non_blocking=True)
