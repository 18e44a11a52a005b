"""The lessons of the Learn tab, and the recordings that only they show. This needs neither a model nor torch."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from decoding.errors import SpecscopeError, TraceError
from decoding.params import shown
from decoding.types import JSON, Trace
from viz.lessons.lesson import FOLDER, Lesson
from viz.lessons.markup import read_glossary
from viz.lessons.page_lesson import LessonWriter
from viz.lessons.reader import read_lesson
from viz.lessons.sources import RunLibrary

from .trace_store import ID, Packed, Proof

_log = logging.getLogger(__name__)


class Lessons:
    """All readable lessons of a folder, in the order in which they are taught."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._library = RunLibrary((folder, RunLibrary().folders[-1]))
        self._lessons = {lesson.id: lesson for lesson in _read(folder)}
        self._sent = dict[str, dict[str, JSON]]()
        self._lock = threading.Lock()
        self.glossary: Mapping[str, str] = {name: sentence for name, (_, sentence) in _glossary(folder).items()}

    def contents(self) -> list[dict[str, JSON]]:
        """Return the list of lessons."""
        return [
            {
                "id": lesson.id,
                "title": lesson.title,
                "topic": lesson.topic,
                "minutes": lesson.minutes,
                "follow": lesson.follow,
                "needs": list(lesson.needs),
                "anchors": [screen.anchor for screen in lesson.screens],
                "questions": sum(screen.ask is not None for screen in lesson.screens),
            }
            for lesson in self._lessons.values()
        ]

    def lesson(self, asked: Any) -> dict[str, JSON]:
        """Return a lesson with its facts computed, once for all visitors."""
        if not isinstance(asked, str) or asked not in self._lessons:
            raise TraceError(f"there is no lesson {shown(asked)}: choose one of {', '.join(self._lessons)}")
        with self._lock:
            if asked not in self._sent:
                self._sent[asked] = LessonWriter(self._lessons[asked], self._library).lesson_json()
            return self._sent[asked]

    def opens_with(self, asked: str) -> str:
        """Return the run that the first screen of a lesson shows, or the first of several."""
        screens: Any = self.lesson(asked)["screens"]
        run: str = screens[0]["show"]["runs"][0]
        return run

    def trace(self, run: str) -> Trace:
        """Return a recording that a lesson names."""
        return self._library.trace(run)

    def recordings(self) -> list[str]:
        """Return the names of the recordings that only lessons and the Cost tab show."""
        return sorted(path.name.removesuffix(".jsonl.gz") for path in self._folder.glob("*.jsonl.gz"))

    def title_of(self, run: object) -> str | None:
        """Return a recording's title: the first lesson that shows it, or one for the Cost tab."""
        if not isinstance(run, str) or run not in self.recordings():
            return None
        shows = (lesson.title for lesson in self._lessons.values() if run in lesson.runs.values())
        title = next(shows, None)
        return f"Lesson: {title}" if title else f"Cost: tree {run.split('-', 2)[2].replace('-', ' ')}"

    def packed(self, run: str) -> Packed | None:
        """Return a recording that only lessons show."""
        path = self._folder / f"{run}.jsonl.gz"
        if not ID.fullmatch(run) or not path.is_file():
            return None
        return Packed(path.read_bytes(), Proof())


def _read(folder: Path) -> list[Lesson]:
    lessons = list[Lesson]()
    for path in folder.glob("*.md"):
        if path.name != "glossary.md":
            try:
                lessons.append(read_lesson(path))
            except SpecscopeError as error:
                _log.warning("the lesson is left out: %s", error)
    return sorted(lessons, key=lambda lesson: (lesson.number, lesson.id))


def _glossary(folder: Path) -> Mapping[str, tuple[str, str]]:
    try:
        return read_glossary(folder / "glossary.md")
    except (OSError, SpecscopeError) as error:
        _log.warning("the glossary is left out: %s", error)
        return {}
