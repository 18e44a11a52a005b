"""Tasks that ask together: each as if it were alone, and no thread is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from analysis.landscape.together import ask, together


class Doubling:
    """Doubles numbers, and notes which were asked for together."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def answer(self, questions: Sequence[int]) -> list[int]:
        """Return twice as much."""
        self.asked.append([*questions])
        return [2 * number for number in questions]


def doubled(service: Doubling, number: int, times: int) -> int:
    """Return a task that asks so many times."""
    for _ in range(times):
        number = ask(service, number)
    return number


def test_what_all_ask_for_is_answered_at_once() -> None:
    """A task that has ended must not be waited for, and answers must not be exchanged."""
    service = Doubling()
    works: list[Callable[[], int]] = [lambda n=n: doubled(service, n, n) for n in range(4)]  # type: ignore[misc]
    assert together(works) == [0, 2, 8, 24]
    assert service.asked == [[1, 2, 3], [4, 6], [12]]


def test_every_service_answers_its_own_questions() -> None:
    one, other = Doubling(), Doubling()
    works = [lambda s=s, n=n: doubled(s, n, 1) for s, n in ((one, 1), (other, 5), (one, 2))]  # type: ignore[misc]
    assert together(works) == [2, 10, 4]
    assert (one.asked, other.asked) == ([[1, 2]], [[5]])


def test_alone_a_task_needs_no_company() -> None:
    assert doubled(Doubling(), 3, 2) == 12


@pytest.mark.parametrize("failing", ["task", "service"])
def test_an_error_ends_all_tasks(failing: str) -> None:
    """Threads that wait for an answer for ever would hold a model's memory."""
    before, service = threading.active_count(), Doubling()

    def fail(*_: object) -> list[int]:
        raise ValueError("as it should")

    if failing == "service":
        service.answer = fail  # type: ignore[method-assign]
    works: list[Callable[[], object]] = [lambda: doubled(service, 1, 3), lambda: doubled(service, 2, 3)]
    with pytest.raises(ValueError, match="as it should"):
        together([*works, fail] if failing == "task" else works)
    assert threading.active_count() == before
