"""Returns memory to CUDA devices that torch has in its own cache, for tensors to come."""

from __future__ import annotations

import gc

import torch


def release_memory() -> None:
    """Free what only cycles of objects hold, then torch's own cache on the devices; without CUDA nothing is done."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gc.collect()
        torch.cuda.empty_cache()
