"""Measures the phases of a step; on CUDA drafting and the target's pass by the device's clock, without waiting."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import torch

from .types import Timing


class Clock:
    """The clock of one step. Use `with clock.phase("draft"): ...`; times of the same phase are added."""

    def __init__(self, device: torch.device) -> None:
        # Events on another device's stream would pass before the work begins.
        self._stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
        self._start = time.perf_counter()
        self._spent = {"draft": 0.0, "forward": 0.0, "accept": 0.0, "commit": 0.0}
        self._events: list[torch.cuda.Event] = []  # at the start, before the target's pass, and after it
        self._drafting = 0.0  # time that the host took to queue the work between the first two
        self._mark()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to the phase `name`."""
        begin = time.perf_counter()
        yield
        self._spent[name] += time.perf_counter() - begin

    @contextmanager
    def forward(self) -> Iterator[None]:
        """Time the target's pass. On CUDA it only marks the stream: the block returns before the work is done."""
        if self._stream is None:
            with self.phase("forward"):
                yield
            return
        self._drafting = self._spent["draft"]
        begin = time.perf_counter()
        self._mark()
        yield
        self._mark()
        self._spent["forward"] += time.perf_counter() - begin

    def _mark(self) -> None:
        if self._stream is not None:
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            event.record(self._stream)
            self._events.append(event)

    def stop(self) -> Timing:
        """Return the step's timing. Acceptance has brought tokens to the host by then, so the events have passed."""
        total = time.perf_counter() - self._start
        spent = self._spent
        if len(self._events) == 3:
            drafted, read = (a.elapsed_time(b) / 1000 for a, b in pairwise(self._events))
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
