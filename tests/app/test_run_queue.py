"""The line in front of the engine."""

from __future__ import annotations

import threading

import pytest

from app.run_queue import FullError, Line


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


def test_clients_take_turns() -> None:
    """One who asks for twenty runs delays another's first by one run, and not by twenty."""
    line, served = Line(16, 8), list[str]()
    loud = [line.join("loud") for _ in range(5)]
    quiet = [line.join("quiet") for _ in range(2)]
    late = line.join("late")
    assert [ticket.wait(0.0) for ticket in quiet] == [1, 4] and late.wait(0.0) == 2
    tickets = {**dict.fromkeys(loud, "loud"), **dict.fromkeys(quiet, "quiet"), late: "late"}
    while tickets:
        first = next(ticket for ticket in tickets if ticket.wait(0.0) == 0)
        served.append(tickets.pop(first))
        first.leave()
    assert served == ["loud", "quiet", "late", "loud", "quiet", "loud", "loud", "loud"]


def test_who_has_the_engine_keeps_it_whoever_comes() -> None:
    line = Line(8, 8)
    first = line.join("a")
    first.leave()
    again = line.join("a")
    assert line.join("b").wait(0.0) == 1 and again.wait(0.0) == 0


def test_whoever_comes_again_and_again_starves_nobody() -> None:
    line, served = Line(8, 8), list[str]()
    mine = [line.join("mine") for _ in range(3)]
    other = line.join("other")
    for _ in range(8):
        first = next(ticket for ticket in [*mine, other] if ticket.wait(0.0) == 0)
        served.append(first.client)
        first.leave()
        if first is other:
            other = line.join("other")
        else:
            mine.remove(first)
        if not mine:
            break
    assert served == ["mine", "other", "mine", "other", "mine"]


def test_one_client_cannot_fill_the_line() -> None:
    line = Line(16, 3)
    loud = [line.join("loud") for _ in range(4)]
    with pytest.raises(FullError, match=r"from your address are waiting already \(3\): try again"):
        line.join("loud")
    assert line.join("quiet").wait(0.0) == 1
    loud[0].leave()
    assert line.join("loud").wait(0.0) == 4
