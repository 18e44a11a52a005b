"""Prepares the lesson that an address names before the page asks for it."""

from __future__ import annotations

import logging
from threading import Lock, Thread

from decoding.errors import SpecscopeError

from ..state import AppState

_log = logging.getLogger(__name__)


class LessonsAhead:
    """Prepares a lesson while the browser that opens its address still loads the page's scripts.

    Otherwise the first visitor of a lesson since the server's start would wait longer than all others.
    """

    def __init__(self, app_state: AppState) -> None:
        self._app_state = app_state
        self._waiting = {str(lesson["id"]) for lesson in app_state.lessons.contents()}
        self._turn = Lock()

    def begin(self, lesson: str) -> Thread | None:
        """Start to prepare a lesson, once for each and one at a time; returns the thread, if there is one."""
        if lesson not in self._waiting or not self._turn.acquire(blocking=False):
            return None
        self._waiting.remove(lesson)
        worker = Thread(target=self._make, args=(lesson,), name=f"lesson {lesson}", daemon=True)
        worker.start()
        return worker

    def _make(self, lesson: str) -> None:
        """Compute a lesson, and the lines of the run that it opens with."""
        recordings, store = self._app_state.recordings, self._app_state.store
        try:
            run = self._app_state.lessons.opens_with(lesson)
            if recordings.get(run):
                recordings.lines(run)
            else:
                store.find(run)
        except SpecscopeError as error:  # the visitor's own call tells it
            _log.info("the lesson %s was not made ready: %s", lesson, error)
        finally:
            self._turn.release()
