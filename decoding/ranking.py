"""The likeliest tokens of every row of logits. Ties break to the lowest id: here, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from .errors import ModelError
from .model.download import fetch, waits
from .native.summaries import largest, summarize, summarizes

NOT_A_NUMBER = "the model's output is not a number here; try dtype float32 or another model"
_FEW = 2**20  # with fewer numbers, numpy finds the largest of a row faster than torch
_SPARE = 32  # further numbers to look at, since bfloat16 has many equal ones


def likeliest(logits: torch.Tensor) -> list[int]:  # (T, V) -> T ids
    """Return the greedy choice of every row; ties break to the lowest id."""
    if summarizes(logits):
        if (best := largest(logits)) is None:
            raise ModelError(NOT_A_NUMBER)
        return best[0]
    if logits.device.type == "cpu":
        # torch takes fifteen times as long in bfloat16 as numpy in float32
        wide = logits if logits.dtype == torch.float64 else logits.float()
        if wide.numel() < _FEW:
            rows = wide.numpy()
            ids = rows.argmax(-1)
            if np.isnan(rows[np.arange(len(rows)), ids]).any():  # numpy takes a NaN for the largest number
                raise ModelError(NOT_A_NUMBER)
            chosen: list[int] = ids.tolist()
            return chosen
        logits = wide
    return checked(*fetch(*likeliest_rows(logits)))


def likeliest_rows(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # (T, V) -> (T,) ids, (T,) faults
    """Make the greedy choices on the logits' device; on the host, `checked` takes both results."""
    ids = logits.argmax(-1)
    return ids, logits.gather(-1, ids[:, None])[:, 0].isnan()


def checked(ids: Sequence[float], faults: Sequence[float]) -> list[int]:
    """Return token ids that came from a device; ModelError if one was chosen by a NaN."""
    if any(faults):
        raise ModelError(NOT_A_NUMBER)
    return [int(token) for token in ids]


def ranked(rows: torch.Tensor, count: int) -> torch.Tensor:  # (R, V) -> (R, count) ids, or all where V is smaller
    """Return the ids of every row's largest numbers, in order; ties break to the lowest id, unlike in `topk`."""
    if summarizes(rows) and (read := summarize(rows, count)) is not None:
        return read[0]
    rows = rows.float()
    if waits(rows.device):
        return _ranked_ties(rows, count)  # the host would wait to learn whether there are ties
    values, ids = rows.topk(min(count + _SPARE, rows.shape[-1]))
    tied = (values[:, 1:] == values[:, :-1])[:, :count].any(-1).nonzero()[:, 0]
    if len(tied):
        by_id = ids[tied].sort(-1)
        order = values[tied].gather(-1, by_id.indices).sort(dim=-1, descending=True, stable=True).indices
        ids[tied] = by_id.values.gather(-1, order)
        last = values[:, min(count, values.shape[1]) - 1]
        # Ties that continue beyond the spare numbers: lower ids may be missing.
        beyond = ((last == values[:, -1]) & (values.shape[1] < rows.shape[-1])).nonzero()[:, 0]
        if len(beyond):
            ids[beyond, :count] = _ranked_ties(rows[beyond], count)
    return ids[:, :count].contiguous()


def likeliest_and_ranked(logits: torch.Tensor, count: int) -> tuple[list[int], list[list[int]]]:  # (T, V)
    """Return every row's greedy choice and its `count` largest ids in order; compiled code reads a row once."""
    if not summarizes(logits):
        return likeliest(logits), ranked(logits, count).tolist()
    if (best := largest(logits, count)) is None:
        raise ModelError(NOT_A_NUMBER)
    ids, width = best[0], min(count, logits.shape[1])
    rows = [ids[first : first + width] for first in range(0, len(ids), width)]
    return ids[::width], rows


def _ranked_ties(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Rank rows with any ties; on a CPU this costs ten times as much."""
    size = rows.shape[-1]
    bits = (rows + 0.0).view(torch.int32)  # adding zero makes minus zero equal to it
    # Floats are ordered like their bits, negative ones in reverse. The id makes every key different.
    keys = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long() << 31
    keys += torch.arange(size - 1, -1, -1, device=rows.device)
    return keys.topk(min(count, size)).indices
