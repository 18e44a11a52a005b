"""Measures the memory bandwidth of a device, which limits how fast a model can decode token by token."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import torch

from .memory import release_memory

_WIDTH = 1024
# Far above what is nearest to the arithmetic, and read in a few milliseconds. Large caches that many cores share may
# still hold it, as they may hold a small model.
_BYTES = {"cpu": 2**26, "cuda": 2**29}
_READS = 3


@cache
def read_bandwidth(device: torch.device) -> float | None:
    """Bytes per second, measured once a process by the product that decoding spends its time in; None: no room."""
    size, best = _BYTES[device.type], None
    with suppress(RuntimeError):  # no room
        best = _fastest_read(device, size)
    release_memory()  # half a gigabyte, that a model may need, or another process
    return None if best is None else round(size / best, 0)


@torch.inference_mode()
def _fastest_read(device: torch.device, size: int) -> float:
    """Seconds that reading `size` bytes takes."""
    block = torch.ones(size // (4 * _WIDTH), _WIDTH, device=device)
    row = torch.ones(_WIDTH, device=device)
    return min(_seconds(device, lambda: torch.mv(block, row)) for _ in range(_READS))


def _seconds(device: torch.device, work: Callable[[], object]) -> float:
    """The time of some work by the device's own clock."""
    if device.type != "cuda":
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin
    with torch.cuda.device(device):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
        events[0].record()
        work()
        events[1].record()
        events[1].synchronize()
    took: float = events[0].elapsed_time(events[1])
    return took / 1000
