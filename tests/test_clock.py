"""The clock of a step, on a device that is pretended."""

from __future__ import annotations

import time
from typing import Self

import pytest
import torch

from decoding.clock import Clock


class Event:
    """Notes the stream that it was recorded on; the device takes 20 ms between two events."""

    streams: list[str]

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self, stream: str) -> None:
        """Note the stream."""
        self.streams.append(stream)

    def elapsed_time(self, end: Self) -> float:
        """Return milliseconds."""
        return 20.0


def test_a_pass_is_timed_on_the_stream_of_its_own_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events on the stream of another device pass before the work begins, and the pass seems to cost nothing."""
    Event.streams = []
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    # The host queues the draft for 2 ms and the pass for 1, waits for 37 and decides for 5.
    times = iter([0.0, 0.0, 0.002, 0.002, 0.003, 0.003, 0.045, 0.045])
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    clock = Clock(torch.device("cuda:1"))
    with clock.phase("draft"):
        pass
    with clock.forward():
        pass
    with clock.phase("accept"):
        pass
    timing = clock.stop()
    assert Event.streams == ["stream of cuda:1"] * 3
    assert (timing.draft_ms, timing.forward_ms, timing.accept_ms, timing.total_ms) == (20.0, 20.0, 5.0, 45.0)
