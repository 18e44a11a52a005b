"""Tasks that ask for something, run together, so that what they ask for is answered for many of them at once.

Each task has a thread of its own, but only one of them runs at a time, and none while answers are made: a thread
keeps the place in the code where its task goes on. So a task is written as if it were alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

T = TypeVar("T")
Question = TypeVar("Question", contravariant=True)
Answer = TypeVar("Answer", covariant=True)


class Service(Protocol[Question, Answer]):
    """What tasks ask."""

    def answer(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """An answer for every question, in their order."""
        ...


class _AbandonedError(BaseException):
    """Another task has failed: nobody answers any more."""


class _Here(threading.local):
    task: _Task[Any] | None = None  # that this thread runs


_here = _Here()


def ask(service: Service[Question, Answer], question: Question) -> Answer:
    """The answer to a question; a task waits until all others have asked or ended."""
    if _here.task is None:
        return service.answer([question])[0]
    return cast("Answer", _here.task.ask(service, question))


def together(works: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks to their ends, and return what they return. The first error that one raises is raised here."""
    if len(works) == 1:  # it need not wait for others
        return [works[0]()]
    tasks = [_Task(work) for work in works]
    waiting = tasks
    try:
        while waiting:
            for task in waiting:
                task.go_on()
            waiting = [task for task in tasks if task.question is not None]
            by_service = dict[int, list[_Task[T]]]()
            for task in waiting:
                by_service.setdefault(id(task.service), []).append(task)
            for asking in by_service.values():
                answers = asking[0].service.answer([task.question for task in asking])
                for task, answer in zip(asking, answers, strict=True):
                    task.answer = answer
    finally:
        for task in tasks:
            task.stop()
    return [task.found[0] for task in tasks]


class _Task(Generic[T]):
    """A task between its questions."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.found: list[T] = []  # what it returned, once it has ended
        self.service: Any = None
        self.question: Any = None  # None while it has none
        self.answer: Any = None
        self._work = work
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None

    def go_on(self) -> None:
        """Run until it asks or ends."""
        if not self._thread.ident:
            self._thread.start()
        else:
            self._turn.release()
        self._back.acquire()
        if self._error is not None:
            raise self._error

    def ask(self, service: Any, question: Any) -> Any:
        """Called by the task itself."""
        self.service, self.question = service, question
        self._back.release()
        self._turn.acquire()
        if self._stopped:
            raise _AbandonedError
        self.question = None
        return self.answer

    def stop(self) -> None:
        """End it, wherever it is."""
        self._stopped = True
        if self._thread.is_alive():
            self._turn.release()
            self._thread.join()

    def _run(self) -> None:
        _here.task = self
        try:
            self.found.append(self._work())
        except _AbandonedError:
            pass
        except BaseException as error:  # noqa: BLE001  # whoever runs the tasks raises it
            self._error = error
        finally:
            self.question = None
            self._back.release()
