"""Memory in large pages, for weights. Each pass reads all of them, and with pages of 4 KB it waits for addresses too.

Linux gives large pages to programs that request them (`madvise`), if not to all. A page of 2 MB is larger than many
weights, so weights share blocks of memory; a block lives as long as one of them does.
"""

from __future__ import annotations

import mmap
import threading
import weakref

import torch

_PAGE = 2**21  # bytes
_BLOCK = 2**25
_LINE = 64  # bytes of a cache line

_lock = threading.Lock()
_filled: tuple[weakref.ref[mmap.mmap], int] | None = None  # the last block, and the bytes used in it


def in_large_pages(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor of the CPU, contiguously, into large pages if the system has them."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return tensor.contiguous()
    with _lock:
        block, offset = _take(tensor.nbytes)
    copy = torch.frombuffer(block, dtype=tensor.dtype, count=tensor.numel(), offset=offset)  # keeps the block alive
    return copy.view(tensor.shape).copy_(tensor)


def _take(size: int) -> tuple[mmap.mmap, int]:
    """Return a block with room for `size` bytes, and their offset."""
    global _filled
    block, begin = (_filled[0](), _filled[1]) if _filled is not None else (None, 0)
    if block is None or begin + size > len(block):
        block, begin = mmap.mmap(-1, max(_BLOCK, -(-size // _PAGE) * _PAGE), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), 0
        block.madvise(mmap.MADV_HUGEPAGE)
    _filled = weakref.ref(block), -(-(begin + size) // _LINE) * _LINE
    return block, begin
