"""Work between a model's passes that a device replays as one graph, where the host would launch each operation.

It is a function of numbers of the host, which are written in one copy, and of tensors of the device. What comes out is
copied to memory of its own inside of the graph, so it lasts until the same work is done again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import torch

from .captured import MOST, Outputs, RecordedGraph, Recorder
from .upload import write

Work = Callable[..., Outputs]  # numbers (n,) in float64, and tensors; it must do the same if it is done twice
_REMEMBERED = 64  # keys that were met and have no graph yet


class Outbox:
    """Memory for what comes out of recorded work, of which one piece is done at a time.

    It outlives the work, so that what is recorded of those who read it is of use in a later run.
    """

    def __init__(self) -> None:
        self._rooms = dict[Hashable, torch.Tensor]()

    def room(self, place: int, like: torch.Tensor) -> torch.Tensor:
        """Where a tensor goes."""
        key = place, like.shape, like.dtype
        if key not in self._rooms:
            self._rooms[key] = torch.empty_like(like, memory_format=torch.contiguous_format)
        return self._rooms[key]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Work on fixed addresses."""

    numbers: torch.Tensor
    tensors: Sequence[torch.Tensor]
    outputs: Outputs  # as they were after the last replay
    fixed: Hashable  # equal where outputs are at the same addresses
    recording: RecordedGraph


class Replays:
    """The recorded work of one session; what was not used for the longest time goes first."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._recorded = OrderedDict[Hashable, Replayed]()
        self._met = OrderedDict[Hashable, None]()

    def run(
        self,
        key: Hashable,
        numbers: Sequence[float],
        tensors: Sequence[tuple[torch.Tensor, int]],
        device: torch.device,
        work: Work,
        outbox: Outbox | None = None,
    ) -> Replayed | None:
        """Do work that is recorded when its key is met for the second time; None where it is to be done as usual.

        `tensors`: each with the rows that the recorded work takes, of which it need not fill all. `outbox`: where what
        comes out shall be.
        """
        recorder = self._recorder
        if recorder is None or not recorder.works(key):
            return None
        if key not in self._recorded and key not in self._met:
            self._met[key] = None
            if len(self._met) > _REMEMBERED:
                self._met.popitem(last=False)
            return None
        with recorder.lock:
            replayed = self._recorded.get(key)
            if replayed is None:
                places = torch.zeros(len(numbers), dtype=torch.float64, device=device)
                twins = [each.new_zeros(rows, *each.shape[1:]) for each, rows in tensors]
            else:
                self._recorded.move_to_end(key)
                places, twins = replayed.numbers, [*replayed.tensors]
            write(torch.tensor(numbers, dtype=torch.float64), places)
            for (each, _), twin in zip(tensors, twins, strict=True):
                twin[: len(each)].copy_(each)
            if replayed is None:
                replayed = self._new(recorder, key, places, twins, work, outbox or Outbox())
                if replayed is None:
                    return None
                if len(self._recorded) == MOST:
                    self._recorded.popitem(last=False)
                self._recorded[key] = replayed
            replayed.recording.replay()
            return replayed

    def _new(
        self,
        recorder: Recorder,
        key: Hashable,
        numbers: torch.Tensor,
        tensors: Sequence[torch.Tensor],
        work: Work,
        outbox: Outbox,
    ) -> Replayed | None:
        outputs: Outputs = ()

        def whole() -> None:
            nonlocal outputs
            made = work(numbers, *tensors)
            outputs = tuple(outbox.room(place, each) for place, each in enumerate(made))
            for each, fresh in zip(outputs, made, strict=True):
                each.copy_(fresh)

        recording = recorder.record(key, whole)
        fixed = outbox, tuple((each.shape, each.dtype) for each in outputs)
        return None if recording is None else Replayed(numbers, tensors, outputs, fixed, recording)
