"""Measures the phases of a step; on CUDA it uses the device's clock for the forward pass, without synchronising."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from .types import Timing


class Clock:
    """The clock of one step. Use `with clock.phase("draft"): ...`; times of the same phase are added."""

    def __init__(self, device: torch.device) -> None:
        # Events on another device's stream would pass before the work begins.
        self._stream = torch.cuda.current_stream(device) if device.type == "cuda" else None
        self._start = time.perf_counter()
        self._spent = {"draft": 0.0, "forward": 0.0, "accept": 0.0, "commit": 0.0}
        self._events: list[torch.cuda.Event] = []

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
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
        begin = time.perf_counter()
        self._events[0].record(self._stream)
        yield
        self._events[1].record(self._stream)
        self._spent["forward"] += time.perf_counter() - begin

    def stop(self) -> Timing:
        """The step's timing. Called after acceptance has brought tokens to the host, so the events have passed."""
        total = time.perf_counter() - self._start
        spent = self._spent
        if self._events:
            device = self._events[0].elapsed_time(self._events[1]) / 1000
            waited = max(0.0, device - spent["forward"])  # the host waited for this inside the accept phase
            spent["forward"], spent["accept"] = device, max(0.0, spent["accept"] - waited)
        return Timing(
            draft_ms=round(spent["draft"] * 1000, 4),
            forward_ms=round(spent["forward"] * 1000, 4),
            accept_ms=round(spent["accept"] * 1000, 4),
            commit_ms=round(spent["commit"] * 1000, 4),
            total_ms=round(total * 1000, 4),
        )
