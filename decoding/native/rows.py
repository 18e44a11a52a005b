"""Rows of a table in compiled code: no tensor is made of their numbers, and none of torch's threads wakes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import torch

from ..errors import ModelError
from .products import function


def gather(table: torch.Tensor, numbers: Sequence[int]) -> torch.Tensor:  # (n, H), m numbers -> (m, H)
    """Copy some rows."""
    wanted, (count, size) = array("q", numbers), table.shape
    rows = table.new_empty(len(wanted), size)
    address, _ = wanted.buffer_info()
    if function("gather", table.dtype)(table.data_ptr(), count, size, address, len(wanted), rows.data_ptr()):
        raise ModelError(f"a token is not one of the model's {count}: name tokens from 0 to {count - 1}")
    return rows
