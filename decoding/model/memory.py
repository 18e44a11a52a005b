"""Checks that a model fits into the devices' memory before it is read, and frees unused memory."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch

from ..errors import ModelError

_GROUP = Path("/sys/fs/cgroup")  # where Linux says how much memory a container may use


def release_memory() -> None:
    """Collect garbage, then free torch's cache on the devices; do nothing without CUDA."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gc.collect()
        torch.cuda.empty_cache()


def check_memory(name: str, size: int, devices: Sequence[torch.device], precision: str) -> None:
    """Raise ModelError if weights of `size` bytes do not fit into the devices' free memory together."""
    free = [free_memory(device) for device in dict.fromkeys(devices)]
    room = sum(part for part in free if part is not None)
    if None in free or size <= room:
        return
    where = ", ".join(dict.fromkeys(map(str, devices)))
    raise ModelError(
        f"the weights of {name[:80]} take {_spelt(size)} in {precision}, but {where} has {_spelt(room)} free: "
        "choose a smaller model, or a dtype of fewer bytes"
    )


def free_memory(device: torch.device) -> int | None:
    """Return the bytes that can still be allocated on a device; None if the system does not report them."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min((part for part in (_available(), _left_in_group()) if part is not None), default=None)


def _available() -> int | None:
    """Read how many bytes Linux can allocate without swapping."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _left_in_group() -> int | None:
    """Read how many bytes this process's container has left, counting memory that only caches files."""
    with suppress(OSError, ValueError):
        most, used = (int((_GROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        stat = dict(line.split() for line in (_GROUP / "memory.stat").read_text().splitlines())
        return max(0, most - used + int(stat.get("file", 0)))
    return None


def _spelt(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
