"""Describes the machine of a training, for its card."""

from __future__ import annotations

import platform

import torch


def machine(device: torch.device) -> str:
    """Describe the graphics processor by its name, or the processor and how much of it was used."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{threads} {'thread' if threads == 1 else 'threads'} of {platform.machine()}"
