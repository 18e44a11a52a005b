"""Large copies that wake none of torch's threads: once awake they spin for milliseconds on cores that layers need."""

from __future__ import annotations

import numpy as np
import torch

MOST = 2**14  # numbers at a time that torch works on in the calling thread alone


def rows(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:  # (n, H), (m,) -> (m, H)
    """Some rows of a table."""
    if table.device.type != "cpu" or len(index) * table.shape[1] <= MOST:
        return table.index_select(0, index)
    found = np.take(table.view(torch.uint8).numpy(), index.numpy(), axis=0)
    return torch.from_numpy(found).view(table.dtype)


def zeros(*size: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of zeros, of whose memory every page has been touched."""
    if device.type != "cpu":
        return torch.zeros(*size, device=device, dtype=dtype)
    made = torch.empty(*size, dtype=dtype)
    made.view(torch.uint8).numpy().fill(0)
    return made
