"""Lesson files are read whole, and a mistake in one is a sentence with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from viz.lessons.lesson import Lesson, LessonError
from viz.lessons.reader import read_lesson

LESSON = """---
id: mine
number: 1
title: Why?
topic: Jacobi decoding
needs:
minutes: 5
object: a word
runs: {pl: lookup, ar: plain}
---
## First {#one}
@show pl ar 4v view=mask node=n2 focus=n1..n3,place:56 zoom=guesses,text
A paragraph
of two lines.

- an item
@ask choose: Which?
- [ ] this :: It is not.
- [x] that
@reveal pl 5c
What came of it.
@dial idea: Short.
@note For the lecturer.

## Second {#two}
@ask press one guess: Press it.
@right n3 = first_rejected(pl 4)
@if n1 n2: Not these.
@else: No.
@reveal
@slider passes "K": 1=pl 2=ar
@cite medusa/larger-trees-are-slower
"""


def read(tmp_path: Path, text: str) -> Lesson:
    """Read a text as a lesson file."""
    path = tmp_path / "mine.md"
    path.write_text(text, encoding="utf-8")
    return read_lesson(path)


def test_a_lesson_is_read(tmp_path: Path) -> None:
    lesson = read(tmp_path, LESSON)
    assert (lesson.id, lesson.minutes, lesson.needs, lesson.runs) == ("mine", 5, (), {"pl": "lookup", "ar": "plain"})
    one, two = lesson.screens
    assert one.show is not None and one.ask is not None and one.reveal is not None and two.ask is not None
    assert (one.show.runs, one.show.step, one.show.phase) == (("pl", "ar"), 4, "verify")
    assert (one.show.node, one.show.focus) == (2, ("n1", "n2", "n3", "place:56"))
    assert [(text.words, text.kind) for text in one.before] == [("A paragraph of two lines.", "p"), ("an item", "li")]
    assert [choice.right for choice in one.ask.choices] == [False, True]
    assert [text.words for text in one.after] == ["What came of it."] and one.reveal.phase == "commit"
    assert two.ask.replies is not None and list(two.ask.replies) == [("n1", "n2")]
    assert two.slider is not None and two.slider.marks == (("1", "pl"), ("2", "ar"))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("---\nid", "id", 1, "begins with ---"),
        ("minutes: 5\n", "", 9, "lacks minutes"),
        ("minutes: 5", "minutes: five", 7, "whole number"),
        ("minutes: 5", "colour: red", 7, "the front matter has one line each"),
        ("{pl: lookup, ar: plain}", "lookup", 9, "{name: recording"),
        ("ar: plain", "pl: plain", 9, "a name of its own"),
        ("## First {#one}", "## First", 11, "{#anchor}"),
        ("## First {#one}", "# First", 11, "{#anchor}"),
        ("@show pl ar 4v", "@show pl", 12, "one to six runs and a step"),
        ("@show pl ar 4v", "@show other 4v", 12, "'other' is no run"),
        ("view=mask", "sight=mask", 12, "sight= is none of"),
        ("focus=n1..n3", "focus=3", 12, "'3' is no node"),
        ("zoom=guesses", "zoom=moon", 12, "zoom=moon is none of"),
        ("A paragraph", "<b>A paragraph", 13, "nothing else"),
        ("@ask choose: Which?", "@ask maybe: Which?", 17, "one @ask"),
        ("@ask choose: Which?", "@ask press one star: Which?", 17, "what is pressed is one of"),
        ("@ask choose: Which?\n", "", 17, "choices come after @ask"),
        ("- [ ] this :: It is not.", "- [ ] this", 18, "needs a reply"),
        ("- [x] that", "- [ ] that :: Neither.", 17, "one of them - [x]"),
        ("@reveal pl 5c", "", 17, "needs an @reveal"),
        ("@dial idea", "@dial joke", 22, "@dial is written as"),
        ("@note", "@remark", 23, "a directive is one of"),
        ("@right n3 = first_rejected(pl 4)\n", "", 26, "needs @right"),
        ("@else: No.\n", "", 26, "needs @else:"),
        ("@if n1 n2: Not", "@if Not", 28, "@if comes after @ask"),
        ('@slider passes "K": 1=pl 2=ar', '@slider passes "K": 1=pl', 31, "@slider is written as"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    """An author who is told "invalid lesson" searches the whole file."""
    assert old in LESSON
    with pytest.raises(LessonError) as error:
        read(tmp_path, LESSON.replace(old, new, 1))
    assert str(error.value).startswith(f"mine.md:{line}: ") and words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LessonError, match=r"mine\.md: the file cannot be read"):
        read_lesson(path)
    path.write_text("---\n" * 1000, encoding="utf-8")
    with pytest.raises(LessonError, match="at most 600 lines"):
        read_lesson(path)
