"""The line in front of the engine."""

from __future__ import annotations

import threading

import pytest

from app.line import FullError, Line


def test_first_come_first_served_and_everybody_sees_their_place() -> None:
    line = Line(8)
    first, second, third = line.join(), line.join(), line.join()
    assert [ticket.wait(0.0) for ticket in (first, second, third)] == [0, 1, 2]
    second.leave()
    assert [ticket.wait(0.0) for ticket in (first, third)] == [0, 1]
    first.leave()
    assert third.wait(0.0) == 0 and len(line) == 1


def test_whoever_waits_is_woken_at_once() -> None:
    line, turns = Line(8), list[int]()
    first, second = line.join(), line.join()
    waiting = threading.Thread(target=lambda: turns.append(second.wait(30.0)))
    waiting.start()
    first.leave()
    waiting.join(10.0)
    assert turns == [0]


def test_a_ticket_is_left_whatever_happens_and_only_once() -> None:
    line = Line(8)
    with pytest.raises(ZeroDivisionError), line.join() as ticket:
        assert ticket.wait(0.0) == 1 / 0
    assert len(line) == 0
    ticket.leave()
    assert len(line) == 0


def test_a_full_line_sends_away_at_once() -> None:
    """Back-pressure: what waits for an hour in a queue helps nobody."""
    line = Line(2)
    tickets = [line.join() for _ in range(3)]  # one that runs, two that wait
    with pytest.raises(FullError, match=r"waiting already \(2\): try again in a minute"):
        line.join()
    tickets[0].leave()
    assert line.join().wait(0.0) == 2
