"""Rows of token ids, and batches: rows packed into lines, in which rows do not see each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

IGNORED = -100  # a label that nothing is learnt from
_OPEN = 64  # lines that still take rows while a file is packed


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """The ids of a conversation or a text, and which of them are learnt: those that an answer wrote."""

    ids: list[int]
    learnt: list[bool]


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of whole rows that do not see each other."""

    ids: Tensor  # (lines, length)
    positions: Tensor  # of the same shape, from 0 again at every row
    learnt: Tensor  # of the same shape: tokens that an answer wrote; never the first of a row

    def to(self, device: torch.device) -> Batch:
        """Move the batch to a device."""
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in (self.ids, self.positions, self.learnt)))

    def select(self, lines: slice | Tensor) -> Batch:
        """Select some of the lines, in the 64-bit integers that models take."""
        return Batch(self.ids[lines].long(), self.positions[lines].long(), self.learnt[lines])

    def parts(self, lines: int) -> Iterator[Batch]:
        """Split the batch into pieces of at most that many lines."""
        for begin in range(0, len(self.ids), lines):
            stop = begin + lines
            yield Batch(self.ids[begin:stop], self.positions[begin:stop], self.learnt[begin:stop])

    def labels(self, distances: int) -> tuple[Tensor, Tensor]:  # (N,), (N, distances)
        """Return the flat positions whose next token is learnt, in order, and the tokens 1, 2, ... `distances` after
        each.

        A label is IGNORED where the answer has ended before. Answers run without gaps, so the token at distance d
        after the n-th position is the next token of the (n + d - 1)-th position.
        """
        length = self.ids.shape[1]
        ids, learnt = (functional.pad(tensor, (0, distances)) for tensor in (self.ids, self.learnt))
        inside, columns = torch.ones_like(self.learnt), []
        for distance in range(1, distances + 1):
            inside = inside & learnt[:, distance : distance + length]
            columns.append(ids[:, distance : distance + length].masked_fill(~inside, IGNORED))
        labels = torch.stack(columns, -1).flatten(0, 1)
        places = (labels[:, 0] != IGNORED).nonzero().flatten()
        return places, labels[places]

    def counts(self, distances: int) -> Tensor:  # (distances,)
        """Count the labels at every distance."""
        return (self.labels(distances)[1] != IGNORED).sum(0)

    def visible(self, window: int = 0) -> Tensor:  # (lines, length, length)
        """Return which tokens see which: those of the same row up to themselves, and no further than any window."""
        row = (self.positions == 0).cumsum(1)
        apart = self.positions[:, :, None] - self.positions[:, None, :]
        seen = (row[:, :, None] == row[:, None, :]) & (apart >= 0)
        return seen & (apart < window) if window else seen


def limit_lines(batches: Iterable[Batch], lines: int) -> list[Batch]:
    """Split batches so that each has at most `lines` lines."""
    return [part for batch in batches for part in batch.parts(lines)]


def pack_rows(rows: Iterable[TrainingRow], length: int, pad: int, count: int | None = None) -> Batch:
    """Pack rows one after the other, each into the first line of `length` tokens that has room for it.

    With a `count`, the batch has exactly so many lines, and rows that fit into none of them are left out. Without one,
    as many lines are made as the rows take, of which the 64 with the most room are open at a time. The ids are 32-bit
    integers, so that a whole file fits into the memory: `Batch.select` gives them to a model.
    """
    lines: list[list[TrainingRow]] = []
    rooms: dict[int, int] = {}  # of the open lines
    for row in rows:
        at = next((line for line, room in rooms.items() if room >= len(row.ids)), len(lines))
        if at == len(lines):
            if len(row.ids) > length or at == count:
                continue
            lines.append([])
            rooms[at] = length
        lines[at].append(row)
        rooms[at] -= len(row.ids)
        if rooms[at] == 0 or (count is None and len(rooms) > _OPEN):
            del rooms[min(rooms, key=lambda line: rooms[line])]
    return _tensors(lines, len(lines) if count is None else count, length, pad)


def _tensors(lines: list[list[TrainingRow]], count: int, length: int, pad: int) -> Batch:
    """Fill the lines up with padding, whose positions begin at 0 as a row's do."""
    shape = (count, length)
    ids, positions = torch.full(shape, pad, dtype=torch.int32), torch.zeros(shape, dtype=torch.int32)
    positions[:] = torch.arange(length)
    learnt = torch.zeros(shape, dtype=torch.bool)
    for at, line in enumerate(lines):
        begin = 0
        for row in line:
            stop = begin + len(row.ids)
            ids[at, begin:stop] = torch.tensor(row.ids)
            positions[at, begin:stop] = torch.arange(len(row.ids))
            learnt[at, begin:stop] = torch.tensor(row.learnt)
            begin = stop
        positions[at, begin:] = torch.arange(length - begin)
    return Batch(ids, positions, learnt)
