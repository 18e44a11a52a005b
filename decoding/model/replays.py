"""Work between a model's passes that a device replays as one graph, where the host would launch each operation.

It is a function of numbers of the host, which are written in one copy, and of tensors of the device. The graph copies
its outputs to memory of their own, where they last until the same work is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from .graphs import Graphs, Outputs, RecordedGraph
from .upload import write_from_host

ReplayableWork = Callable[..., Outputs]  # numbers (n,) in float64, and tensors; it must do the same if it is done twice


class Outbox:
    """Memory for the outputs of recorded work, of which one piece is done at a time.

    It outlives the work, so that what is recorded of those who read it is of use in a later run.
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
    """Work on fixed addresses."""

    numbers: torch.Tensor
    tensors: Sequence[torch.Tensor]
    outbox: Outbox
    outputs: Outputs = ()  # as they were after the last replay
    graph: RecordedGraph | None = None

    @property
    def fixed(self) -> Hashable:
        """Equal where outputs are at the same addresses."""
        return self.outbox, tuple((each.shape, each.dtype) for each in self.outputs)

    def run(self, work: ReplayableWork) -> None:
        """Do the work, and copy its outputs into the outbox."""
        made = work(self.numbers, *self.tensors)
        self.outputs = tuple(self.outbox.room(place, each) for place, each in enumerate(made))
        for each, fresh in zip(self.outputs, made, strict=True):
            each.copy_(fresh)


class Replays(Graphs[Replayed]):
    """The recorded work of one session beside its model's passes."""

    def run(
        self,
        key: Hashable,
        numbers: Sequence[float],
        tensors: Sequence[tuple[torch.Tensor, int]],
        device: torch.device,
        work: ReplayableWork,
        outbox: Outbox | None = None,
    ) -> Replayed | None:
        """Do work that is recorded when its key is met for the second time; None where it is to be done as usual.

        `tensors`: each with the rows that the recorded work takes, not all of which it need fill. `outbox`: memory for
        the outputs.
        """

        def make() -> tuple[Replayed, Callable[[], None]]:
            places = torch.zeros(len(numbers), dtype=torch.float64, device=device)
            twins = [each.new_zeros(rows, *each.shape[1:]) for each, rows in tensors]
            replayed = Replayed(places, twins, outbox or Outbox())
            return replayed, partial(replayed.run, work)

        def fill(replayed: Replayed) -> None:
            write_from_host(torch.tensor(numbers, dtype=torch.float64), replayed.numbers)
            for (each, _), twin in zip(tensors, replayed.tensors, strict=True):
                twin[: len(each)].copy_(each)

        return self._replay(key, key, make, fill)
