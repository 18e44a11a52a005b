"""Runs the same code at many positions, and answers their questions together.

A method calls its drafter in the middle of `propose`, and only a thread can pause it there. So every position has a
thread; one of them runs at a time, and none while answers are made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
Q = TypeVar("Q")
A = TypeVar("A")


class Ask(Protocol):
    """The function that a task calls with a question; `answer` answers many questions of its kind at once."""

    def __call__(self, answer: Callable[[Sequence[Q]], Sequence[A]], question: Q) -> A:
        """Return the answer, once every other task has asked or ended."""
        ...


def ask_alone(answer: Callable[[Sequence[Q]], Sequence[A]], question: Q) -> A:
    """Answer a question by itself."""
    return answer([question])[0]


def run_together(tasks: Sequence[Callable[[Ask], T]]) -> list[T]:
    """Run tasks to their ends and return their results; raise the first error."""
    if len(tasks) == 1:
        return [tasks[0](ask_alone)]
    desk = _Desk()
    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(desk.run, number, task) for number, task in enumerate(tasks)]
        for future in futures:
            future.add_done_callback(lambda _: desk.inbox.put(None))
        try:
            desk.answer_all(len(tasks))
        finally:
            desk.close()
    return [future.result() for future in futures]


class _Question(NamedTuple):
    task: int
    answer: Callable[[Sequence[Any]], Sequence[Any]]
    question: Any
    reply: Future[Any]


class _Desk:
    """Takes the questions of all tasks."""

    def __init__(self) -> None:
        self.inbox = SimpleQueue[_Question | None]()  # None: a task has ended
        self._turn = threading.Lock()  # held by the task that runs
        self._replies: dict[int, Future[Any]] = {}  # the last of each task
        self._closed = False

    def run(self, number: int, task: Callable[[Ask], T]) -> T:
        """Run a task when it is its turn."""
        with self._turn:
            return task(partial(self._ask, number))

    def answer_all(self, running: int) -> None:
        """Answer questions, in the order of their tasks, until every task has ended."""
        while running:
            received = [self.inbox.get() for _ in range(running)]
            asked = sorted((each for each in received if each is not None), key=lambda each: each.task)
            running = len(asked)
            kinds = dict.fromkeys(each.answer for each in asked)
            for answer in kinds:
                same = [each for each in asked if each.answer == answer]
                for each, reply in zip(same, answer([each.question for each in same]), strict=True):
                    each.reply.set_result(reply)

    def close(self) -> None:
        """End the tasks that still wait: after an error nobody answers them."""
        self._closed = True
        for reply in [*self._replies.values()]:
            reply.cancel()

    def _ask(self, task: int, answer: Callable[[Sequence[Q]], Sequence[A]], question: Q) -> A:
        reply: Future[A] = Future()
        self._replies[task] = reply
        if self._closed:
            raise CancelledError
        self.inbox.put(_Question(task, answer, question, reply))
        self._turn.release()
        try:
            return reply.result()
        finally:
            self._turn.acquire()
