"""What rows of logits come to, found in one look at each: the largest numbers, and what all of them sum up to."""

from __future__ import annotations

import torch

from .products import function, has_native

PIECE = 2**14  # numbers that torch works on without waking its threads, which would spin beside compiled layers
_FEW = 1024  # numbers of a row below which there is nothing to gain


def summarizes(rows: torch.Tensor) -> bool:  # (R, V)
    """Whether the compiled code reads such rows."""
    return rows.dim() == 2 and rows.shape[1] >= _FEW and has_native(rows.device, rows.dtype)


def summarize(
    rows: torch.Tensor, count: int, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """Of every row (R, V) the ids of the largest numbers, ties by the lowest id; those numbers; and two sums.

    With d = (x - largest) * scale they are the sums of exp(d) and of exp(d) * d over the row. Without `scale` they are
    left out: they take most of the time. None where a number is not a number.
    """
    rows = rows.contiguous()
    count = min(count, rows.shape[1])
    ids = torch.empty(len(rows), count, dtype=torch.int32)
    values, (totals, moments) = torch.empty(len(rows), count), torch.empty(2, len(rows) if scale is not None else 0)
    spoilt = function("summarize", rows.dtype)(
        rows.data_ptr(),
        *rows.shape,
        count,
        scale or 0.0,
        ids.data_ptr(),
        values.data_ptr(),
        totals.data_ptr() if scale is not None else None,
        moments.data_ptr() if scale is not None else None,
        torch.get_num_threads(),
    )
    return None if spoilt else (ids.long(), values, totals, moments)
