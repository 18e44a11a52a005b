"""The queue in front of the engine."""

from __future__ import annotations

import threading

import pytest

from app.server.run_queue import FullError, RunQueue


def test_first_come_first_served_and_everybody_sees_their_place() -> None:
    queue = RunQueue(8)
    first, second, third = queue.join(), queue.join(), queue.join()
    assert [ticket.wait(0.0) for ticket in (first, second, third)] == [0, 1, 2]
    second.leave()
    assert [ticket.wait(0.0) for ticket in (first, third)] == [0, 1]
    first.leave()
    assert third.wait(0.0) == 0 and len(queue) == 1


def test_whoever_waits_is_woken_at_once() -> None:
    queue, turns = RunQueue(8), list[int]()
    first, second = queue.join(), queue.join()
    waiting = threading.Thread(target=lambda: turns.append(second.wait(30.0)))
    waiting.start()
    first.leave()
    waiting.join(10.0)
    assert turns == [0]


def test_a_ticket_is_left_whatever_happens_and_only_once() -> None:
    queue = RunQueue(8)
    with pytest.raises(ZeroDivisionError), queue.join() as ticket:
        assert ticket.wait(0.0) == 1 / 0
    assert len(queue) == 0
    ticket.leave()
    assert len(queue) == 0


def test_a_full_queue_sends_away_at_once() -> None:
    """Back-pressure: what waits for an hour in a queue helps nobody."""
    queue = RunQueue(2)
    tickets = [queue.join() for _ in range(3)]  # one that runs, two that wait
    with pytest.raises(FullError, match=r"waiting already \(2\): try again in a minute"):
        queue.join()
    tickets[0].leave()
    assert queue.join().wait(0.0) == 2


def test_clients_take_turns() -> None:
    """One who asks for twenty runs delays another's first by one run, and not by twenty."""
    queue, served = RunQueue(16, 8), list[str]()
    loud = [queue.join("loud") for _ in range(5)]
    quiet = [queue.join("quiet") for _ in range(2)]
    late = queue.join("late")
    assert [ticket.wait(0.0) for ticket in quiet] == [1, 4] and late.wait(0.0) == 2
    tickets = {**dict.fromkeys(loud, "loud"), **dict.fromkeys(quiet, "quiet"), late: "late"}
    while tickets:
        first = next(ticket for ticket in tickets if ticket.wait(0.0) == 0)
        served.append(tickets.pop(first))
        first.leave()
    assert served == ["loud", "quiet", "late", "loud", "quiet", "loud", "loud", "loud"]


def test_who_has_the_engine_keeps_it_whoever_comes() -> None:
    queue = RunQueue(8, 8)
    first = queue.join("a")
    first.leave()
    again = queue.join("a")
    assert queue.join("b").wait(0.0) == 1 and again.wait(0.0) == 0


def test_whoever_comes_again_and_again_starves_nobody() -> None:
    queue, served = RunQueue(8, 8), list[str]()
    mine = [queue.join("mine") for _ in range(3)]
    other = queue.join("other")
    for _ in range(8):
        first = next(ticket for ticket in [*mine, other] if ticket.wait(0.0) == 0)
        served.append(first.client)
        first.leave()
        if first is other:
            other = queue.join("other")
        else:
            mine.remove(first)
        if not mine:
            break
    assert served == ["mine", "other", "mine", "other", "mine"]


def test_one_client_cannot_fill_the_queue() -> None:
    queue = RunQueue(16, 3)
    loud = [queue.join("loud") for _ in range(4)]
    with pytest.raises(FullError, match=r"from your address are waiting already \(3\): try again"):
        queue.join("loud")
    assert queue.join("quiet").wait(0.0) == 1
    loud[0].leave()
    assert queue.join("loud").wait(0.0) == 4
