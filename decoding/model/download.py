"""How small numbers get from a device to the host, which waits for all that the device has been given to do."""

from __future__ import annotations

from itertools import accumulate, pairwise

import torch


def waits(device: torch.device) -> bool:
    """Whether the host waits when it asks for a number, so that it should ask once for all that it may need."""
    return device.type != "cpu"


def fetch(*tensors: torch.Tensor, decimals: int | None = None) -> list[list[float]]:
    """The numbers of tensors of one device, each flat: one copy and one wait, however many tensors they are.

    Whole numbers come back exactly as long as they are smaller than 2 ** 53. With `decimals` all are rounded.
    """
    parts = [tensor.reshape(-1).double() for tensor in tensors]
    flat = torch.cat(parts) if len(parts) > 1 else parts[0]
    return _lists(_on_the_host(flat if decimals is None else flat.round(decimals=decimals)), tensors)


def _on_the_host(numbers: torch.Tensor) -> torch.Tensor:
    if numbers.device.type != "cuda":
        return numbers.cpu()
    # A copy into memory that could be moved waits inside of torch, which cannot be told from a wait by mistake.
    host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
    host.copy_(numbers, non_blocking=True)
    torch.cuda.current_stream(numbers.device).record_event().synchronize()
    return host


def _lists(numbers: torch.Tensor, tensors: tuple[torch.Tensor, ...]) -> list[list[float]]:
    listed: list[float] = numbers.tolist()
    bounds = pairwise(accumulate((tensor.numel() for tensor in tensors), initial=0))
    return [listed[begin:end] for begin, end in bounds]
