"""Work between a model's passes that a device replays as one graph, so that the host need not launch each operation.

It is a function of numbers on the host, which are written in one copy, and of tensors on the device. The graph copies
its outputs to separate memory, where they last until the same work is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from .graphs import Graphs, Outputs, RecordedGraph
from .upload import write_from_host

ReplayableWork = Callable[..., Outputs]  # takes numbers (n,) in float64, and tensors; must be idempotent


class Outbox:
    """Memory for the outputs of recorded work, one piece of which runs at a time.

    It outlives the work, so that recordings of its readers stay valid in later runs.
    """

    def __init__(self) -> None:
        self._rooms = dict[Hashable, torch.Tensor]()

    def room(self, place: Hashable, like: torch.Tensor) -> torch.Tensor:
        """Return the memory for an output."""
        key = place, like.shape, like.dtype
        if key not in self._rooms:
            self._rooms[key] = torch.empty_like(like, memory_format=torch.contiguous_format)
        return self._rooms[key]


@dataclass(slots=True)
class Replayed:
    """Work at fixed addresses."""

    numbers: torch.Tensor
    tensors: Sequence[torch.Tensor]
    outbox: Outbox
    outputs: Outputs = ()  # as they were after the last replay
    graph: RecordedGraph | None = None

    @property
    def fixed(self) -> Hashable:
        """Return a key that is equal for outputs at the same addresses."""
        return self.outbox, tuple((each.shape, each.dtype) for each in self.outputs)

    def run(self, work: ReplayableWork) -> None:
        """Do the work, and copy its outputs into the outbox."""
        made = work(self.numbers, *self.tensors)
        self.outputs = tuple(self.outbox.room(place, each) for place, each in enumerate(made))
        for each, fresh in zip(self.outputs, made, strict=True):
            each.copy_(fresh)


class Replays(Graphs[Replayed]):
    """The recorded work of one session besides its model's passes."""

    def run(
        self,
        key: Hashable,
        numbers: Sequence[float],
        tensors: Sequence[tuple[torch.Tensor, int]],
        device: torch.device,
        work: ReplayableWork,
        outbox: Outbox | None = None,
    ) -> Replayed | None:
        """Do work that is recorded when its key occurs for the second time; None if it must be done as usual.

        `tensors`: each with the rows that the recorded work takes, which it may fill in part. `outbox`: memory for the
        outputs.
        """

        def make() -> tuple[Replayed, Callable[[], None]]:
            on_device = torch.zeros(len(numbers), dtype=torch.float64, device=device)
            copies = [each.new_zeros(rows, *each.shape[1:]) for each, rows in tensors]
            replayed = Replayed(on_device, copies, outbox or Outbox())
            return replayed, partial(replayed.run, work)

        def fill(replayed: Replayed) -> None:
            write_from_host(torch.tensor(numbers, dtype=torch.float64), replayed.numbers)
            for (each, _), copy in zip(tensors, replayed.tensors, strict=True):
                copy[: len(each)].copy_(each)

        return self._replay(key, key, make, fill)
