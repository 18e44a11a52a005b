"""Large copies without torch's threads: once awake they spin for milliseconds on cores that the layers need."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..errors import ModelError
from ..native.products import function, has_native
from .upload import on_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .upload import Tokens

MOST = 2**14  # numbers at a time that torch works on in the calling thread alone


def rows(table: torch.Tensor, index: Tokens) -> torch.Tensor:  # (n, H), m numbers -> (m, H)
    """Copy some rows of a table."""
    if not isinstance(index, torch.Tensor):
        if has_native(table.device, table.dtype) and table.is_contiguous():
            return _gather(table, index)
        index = on_device(index, table.device)
    if table.device.type != "cpu" or len(index) * table.shape[1] <= MOST or not table.is_contiguous():
        return table.index_select(0, index)
    taken = np.take(table.view(torch.uint8).numpy(), index.numpy(), axis=0)
    return torch.from_numpy(taken).view(table.dtype)


def _gather(table: torch.Tensor, index: Sequence[int]) -> torch.Tensor:
    """Copy rows in compiled code, without making a tensor of the row numbers."""
    numbers, (count, size) = array("q", index), table.shape
    rows = table.new_empty(len(numbers), size)
    address, _ = numbers.buffer_info()
    if function("gather", table.dtype)(table.data_ptr(), count, size, address, len(numbers), rows.data_ptr()):
        raise ModelError(f"a token is not one of the model's {count}: name tokens from 0 to {count - 1}")
    return rows


def zeros(*size: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Make a tensor of zeros, every page of whose memory has been touched."""
    if device.type != "cpu":
        return torch.zeros(*size, device=device, dtype=dtype)
    made = torch.empty(*size, dtype=dtype)
    made.view(torch.uint8).numpy().fill(0)
    return made
