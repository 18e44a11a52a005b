"""Memory in large pages, for weights. Each pass reads all of them, and in pages of 4 KB it waits for addresses as well.

Linux gives large pages to programs that ask for them (`madvise`), if not to all. A page has 2 MB, which is more than
many a weight, so that weights share blocks of memory; a block lives as long as one of them does.
"""

from __future__ import annotations

import mmap
import threading
import weakref

import torch

_PAGE = 2**21  # bytes
_BLOCK = 2**25
_LINE = 64  # bytes that a processor loads together

_lock = threading.Lock()
_filled: tuple[weakref.ref[mmap.mmap], int] | None = None  # the last block, and how many of its bytes are taken


def in_large_pages(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor of the CPU, contiguously, into large pages where the system has them."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return tensor.contiguous()
    with _lock:
        block, offset = _take(tensor.nbytes)
    copy = torch.frombuffer(block, dtype=tensor.dtype, count=tensor.numel(), offset=offset)  # and holds the block
    return copy.view(tensor.shape).copy_(tensor)


def _take(size: int) -> tuple[mmap.mmap, int]:
    """Return a block with room for so many bytes, and their offset."""
    global _filled
    block, begin = (_filled[0](), _filled[1]) if _filled is not None else (None, 0)
    if block is None or begin + size > len(block):
        block, begin = mmap.mmap(-1, max(_BLOCK, -(-size // _PAGE) * _PAGE), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), 0
        block.madvise(mmap.MADV_HUGEPAGE)
    _filled = weakref.ref(block), -(-(begin + size) // _LINE) * _LINE
    return block, begin
