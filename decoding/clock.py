"""Measures the phases of a step; on CUDA drafting and the target's pass by the device's clock, without waiting."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from .types import Timing


class Mark:
    """A moment: on CUDA, when the device has finished all work queued so far."""

    def __init__(self, stream: torch.cuda.Stream | None) -> None:
        self._moment = time.perf_counter() if stream is None else 0.0
        self._event: torch.cuda.Event | None = None
        if stream is not None:
            self._event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            self._event.record(stream)

    def until(self, later: Mark) -> float:
        """Return the seconds to a later moment, which must have passed."""
        if self._event is None:
            return later._moment - self._moment
        assert later._event is not None
        return float(self._event.elapsed_time(later._event)) / 1000


class Clock:
    """The clock of one step. Use `with clock.phase("draft"): ...`; times of the same phase are added."""

    def __init__(self, device: torch.device) -> None:
        # Events on another device's stream would pass before the work begins.
        self._stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
        self._start = time.perf_counter()
        self._spent = {"draft": 0.0, "forward": 0.0, "accept": 0.0, "commit": 0.0}
        self._marks = [] if self._stream is None else [Mark(self._stream)]  # before and after the target's pass, too
        self._drafting = 0.0  # seconds that the host took to queue the work between the first two
        self._waited = 0.0  # seconds, for the device
        self.ahead: Sequence[Mark] = ()  # before and after the step's pass, if the previous step queued it

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to the phase `name`."""
        begin = time.perf_counter()
        yield
        self._spent[name] += time.perf_counter() - begin

    @contextmanager
    def forward(self) -> Iterator[None]:
        """Time the target's pass. On CUDA this only marks the stream: the block ends before the work is done."""
        if self._stream is None:
            with self.phase("forward"):
                yield
            return
        self._drafting = self._spent["draft"]
        begin = time.perf_counter()
        self._marks.append(Mark(self._stream))
        yield
        self._marks.append(Mark(self._stream))
        self._spent["forward"] += time.perf_counter() - begin

    @contextmanager
    def next_pass(self) -> Iterator[list[Mark]]:
        """Mark the beginning and the end of the next step's pass, for the `ahead` of its clock."""
        marks = [Mark(self._stream)]
        yield marks
        marks.append(Mark(self._stream))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the block's time as waiting for the device."""
        begin = time.perf_counter()
        yield
        self._waited += time.perf_counter() - begin

    def stop(self) -> Timing:
        """Return the step's timing. The marks have passed, as acceptance has waited for the device's tokens."""
        total = time.perf_counter() - self._start
        spent = self._spent
        if self.ahead:
            total = self._beside_the_pass(total)
        elif len(self._marks) == 3:
            start, before, after = self._marks
            drafted, read = start.until(before), before.until(after)
            queued = self._drafting + spent["forward"]
            spent["accept"] -= max(0.0, drafted + read - queued)  # the host waited for this inside the accept phase
            spent["accept"], spent["forward"] = max(0.0, spent["accept"]), read
            spent["draft"] += drafted - self._drafting
        return Timing(
            draft_ms=round(spent["draft"] * 1000, 4),
            forward_ms=round(spent["forward"] * 1000, 4),
            accept_ms=round(spent["accept"] * 1000, 4),
            commit_ms=round(spent["commit"] * 1000, 4),
            total_ms=round(total * 1000, 4),
        )

    def _beside_the_pass(self, total: float) -> float:
        """Set the phases of a step whose pass ran while the host worked; return the step's time.

        That is at least the pass's time. The host's work counts as far as it took longer than the pass.
        """
        before, after = self.ahead
        spent, read = self._spent, before.until(after)
        spent["accept"] = max(0.0, spent["accept"] - self._waited)
        worked, excess = sum(spent.values()), max(0.0, total - read)
        for name in spent:
            spent[name] *= min(1.0, excess / worked) if worked else 0.0
        spent["forward"] = read
        return read + excess
