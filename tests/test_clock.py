"""The clock of a step, on a device that is pretended."""

from __future__ import annotations

import time
from typing import Self

import pytest
import torch

from decoding.clock import Clock
from decoding.types import Timing


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


def _of_a_queued_pass(monkeypatch: pytest.MonkeyPatch, waited: float, decided: float, between: float) -> Timing:
    """Time a step whose pass, of 20 ms on the device, was queued by the step before, so many seconds earlier."""
    Event.streams = []
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "a stream")
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    before = Clock(torch.device("cuda"))
    with before.next_pass() as marks:
        pass
    now += between
    clock = Clock(torch.device("cuda"))
    clock.ahead = marks
    with clock.phase("accept"):
        with clock.waiting():
            now += waited
        now += decided
    return clock.stop()


def test_a_pass_that_was_queued_ahead_hides_the_hosts_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device was at it while the host decided on the step before; no step is shorter than its pass."""
    timing = _of_a_queued_pass(monkeypatch, waited=0.018, decided=0.002, between=0.002)
    assert (timing.forward_ms, timing.accept_ms, timing.total_ms) == (20.0, 0.0, 20.0)
    # Somebody who took a second between two steps has not made them faster.
    timing = _of_a_queued_pass(monkeypatch, waited=0.0, decided=0.002, between=1.0)
    assert (timing.forward_ms, timing.accept_ms, timing.total_ms) == (20.0, 0.0, 20.0)
    # The host's work beside a pass is what it did, not how long it waited for other work of the device.
    timing = _of_a_queued_pass(monkeypatch, waited=0.045, decided=0.005, between=0.0)
    assert (timing.forward_ms, timing.accept_ms, timing.total_ms) == (20.0, 5.0, 50.0)
    # Nor is the host's work nothing where it takes longer than the pass.
    timing = _of_a_queued_pass(monkeypatch, waited=0.0, decided=0.035, between=0.035)
    assert (timing.forward_ms, timing.accept_ms, timing.total_ms) == (20.0, 15.0, 35.0)
