"""A lesson on paper: what a reader without scripts sees of it."""

from __future__ import annotations

import pytest

from viz.lessons.lesson import FOLDER
from viz.lessons.page_lesson import LessonWriter
from viz.lessons.plain_page import plain_lesson
from viz.lessons.reader import read_lesson
from viz.lessons.sources import RunLibrary


@pytest.mark.parametrize(("lesson", "answer"), [("dflash", "21.9"), ("debug", "4.24"), ("cache", "189"), ("law", "60")])
def test_answers_have_as_many_digits_as_on_the_page(lesson: str, answer: str) -> None:
    """One was printed as 21.906693711967545."""
    library = RunLibrary()
    page = plain_lesson(LessonWriter(read_lesson(FOLDER / f"{lesson}.md"), library).lesson_json(), library.trace)
    assert f"<p><strong>{answer}</strong></p>" in page
