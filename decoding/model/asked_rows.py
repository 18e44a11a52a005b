"""Which rows of a pass are answered for."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .upload import upload


def asked(rows: torch.Tensor, skip: int, only: Sequence[int] | None) -> torch.Tensor:
    """Of a pass's rows those that `Session.read` answers for."""
    if only is not None and len(only) < len(rows):
        return rows.index_select(0, upload(torch.tensor(only, dtype=torch.long), rows.device))
    return rows[skip:] if skip and only is None else rows
