"""Fetches small numbers from a device to the host, which waits for all work queued before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

import torch


def waits(device: torch.device) -> bool:
    """Return True if the host waits for a device's numbers, so that it should fetch all that it may need at once."""
    return device.type != "cpu"


def fetch(*tensors: torch.Tensor, decimals: int | None = None) -> list[list[float]]:
    """Fetch the numbers of tensors of one device, each flat, in one copy and one wait.

    Whole numbers below 2 ** 53 are exact. With `decimals` all are rounded.
    """
    return fetching(*tensors, decimals=decimals)()


def fetching(*tensors: torch.Tensor, decimals: int | None = None) -> Callable[[], list[list[float]]]:
    """Queue the copy of `fetch`; return a function that waits for it. The tensors may be overwritten at once."""
    parts = [tensor.reshape(-1).double() for tensor in tensors]
    flat = torch.cat(parts) if len(parts) > 1 else parts[0]
    if decimals is not None:
        flat = flat.round(decimals=decimals)
    if flat.device.type != "cuda":
        lists = _lists(flat.cpu(), parts)
        return lambda: lists
    # A copy into unpinned memory would wait inside of torch, where it looks like an unintended wait.
    host = torch.empty(flat.shape, dtype=flat.dtype, pin_memory=True)
    host.copy_(flat, non_blocking=True)
    copied = torch.cuda.current_stream(flat.device).record_event()

    def wait() -> list[list[float]]:
        copied.synchronize()
        return _lists(host, parts)

    return wait


def split(numbers: list[float], sizes: Iterable[int]) -> list[list[float]]:
    """Split numbers into lists of these sizes."""
    return [numbers[begin:end] for begin, end in pairwise(accumulate(sizes, initial=0))]


def _lists(numbers: torch.Tensor, parts: Sequence[torch.Tensor]) -> list[list[float]]:
    return split(numbers.tolist(), (part.numel() for part in parts))
