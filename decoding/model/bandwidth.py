"""Measures the memory bandwidth of a device, which limits how fast a model can decode token by token."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import torch

from .memory import release_memory

_CACHES = Path("/sys/devices/system/cpu")
_USUAL_CACHE = 2**25  # bytes, if the system does not report them
_LEAST, _MOST = 2**26, 2**29  # bytes to read; on a GPU the most, so that starting a kernel costs little beside it
_CACHES_FULL = 4  # read this many times the cache's size, so that nearly all of it comes from memory
_READS = 3


def read_bandwidth(device: torch.device) -> float | None:
    """Measure the bytes per second that torch's threads read; None if there is too little memory to measure.

    The speed of a shared machine changes within minutes, so every run measures it again.
    """
    size, best = _MOST, None
    if device.type != "cuda":
        size = min(max(_CACHES_FULL * cache_bytes([device]), _LEAST), _MOST)
    with suppress(RuntimeError, MemoryError):  # no room
        best = _fastest_read(device, size)
    if device.type == "cuda":
        release_memory()  # a model may need it, or another process
    return round(size / best, 0) if best else None


def slowest_read(devices: Iterable[torch.device]) -> float | None:
    """Measure the bandwidth of the slowest device, since a model's layers are read one after the other."""
    measured = [read_bandwidth(device) for device in set(devices)]
    return min((each for each in measured if each is not None), default=None)


def cache_bytes(devices: Iterable[torch.device]) -> int:
    """Sum the sizes of the devices' last caches."""
    return sum(_cache_bytes(device) for device in set(devices))


@cache
def _cache_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    sizes = dict[str, int]()  # by the cores that share a cache
    for folder in _CACHES.glob("cpu[0-9]*/cache/index3"):
        with suppress(OSError, ValueError):
            size = (folder / "size").read_text().strip()
            sizes[(folder / "shared_cpu_list").read_text()] = int(size.removesuffix("K")) * 1024
    return sum(sizes.values()) or _USUAL_CACHE


@torch.inference_mode()
def _fastest_read(device: torch.device, size: int) -> float:
    """Time reading `size` bytes, as a maximum: it costs less arithmetic than any product."""
    if device.type == "cuda":
        block = torch.ones(size // 4, device=device)
    else:  # numpy asks for large pages, which are allocated four times as fast
        block = torch.from_numpy(np.empty(size // 4, np.float32)).fill_(1)
    return min(_seconds(device, block.amax) for _ in range(_READS))


def _seconds(device: torch.device, work: Callable[[], object]) -> float:
    """Time some work by the device's own clock."""
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
