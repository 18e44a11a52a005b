"""Weights in large pages are the same numbers, in memory that ends with them."""

from __future__ import annotations

import gc
import mmap
import weakref

import pytest
import torch

from decoding.native import large_pages
from decoding.native.large_pages import in_large_pages

pytestmark = pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="this system has no large pages to ask for")


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [(1,), (3, 5, 7), (2**23, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_copy_has_the_same_numbers_however_the_original_lies(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Also one that is larger than a block."""
    original = torch.arange(torch.Size(shape).numel()).to(dtype).view(shape)
    turned = original.transpose(0, -1)
    copy, other = in_large_pages(turned), in_large_pages(original)
    assert torch.equal(copy, turned) and torch.equal(other, original)
    assert copy.is_contiguous() and copy.data_ptr() % 64 == other.data_ptr() % 64 == 0


def test_a_block_is_shared_and_ends_with_the_last_of_its_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is evicted would otherwise leave its memory behind."""
    monkeypatch.setattr(large_pages, "_filled", None)
    first, second = in_large_pages(torch.ones(1000)), in_large_pages(torch.ones(1000))
    assert 4000 <= second.data_ptr() - first.data_ptr() < 4000 + 64
    assert large_pages._filled is not None
    block: weakref.ref[mmap.mmap] = large_pages._filled[0]
    del first
    gc.collect()
    assert block() is not None and second.sum() == 1000
    del second
    gc.collect()
    assert block() is None
    assert in_large_pages(torch.ones(10)).sum() == 10  # in a new one
