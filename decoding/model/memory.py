"""Returns memory that nothing uses any longer to CUDA devices; torch keeps it for tensors to come."""

from __future__ import annotations

import gc

import torch


def release_memory() -> None:
    """Free what only cycles of objects hold, then what torch keeps on the devices; without CUDA nothing is done."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gc.collect()
        torch.cuda.empty_cache()
