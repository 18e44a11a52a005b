"""Prompt sets from files that others wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decoding import ParamError
from decoding.prompts import tasks
from decoding.prompts.tasks import Task, read_tasks


def put(folder: Path, content: str | bytes) -> Path:
    path = folder / "questions.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_spec_bench_questions_are_read(tmp_path: Path) -> None:
    """Losing the second turn or the id would make the numbers incomparable with the leaderboard's."""
    lines = [
        {"question_id": 81, "category": "writing", "turns": ["Write.", "Rewrite."]},
        {"question_id": 82, "category": "math", "turns": ["1+1?"], "reference": ["2"]},
        {"question_id": 83, "category": "qa", "turns": ["Who?"], "reference": None, "extra": 1},
    ]
    path = put(tmp_path, "\n".join(map(json.dumps, lines)) + "\n\n")
    assert read_tasks(path) == (
        Task(81, "writing", ("Write.", "Rewrite.")),
        Task(82, "math", ("1+1?",), ("2",)),
        Task(83, "qa", ("Who?",)),
    )
    assert len(read_tasks(path, limit=2)) == 2


def test_plain_lines_are_read(tmp_path: Path) -> None:
    """Most people's prompts have no ids; the line's number stands in."""
    path = put(tmp_path, b'\xef\xbb\xbf{"prompt": "a"}\r\n\r\n{"turns": ["b", "c"]}')
    assert read_tasks(path) == (Task(1, "prompt", ("a",)), Task(3, "prompt", ("b", "c")))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("9" * 10_000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
        ("[1]", "JSON object"),
        ("{}", "neither"),
        ('{"prompt": 1}', "prompt must be a text"),
        ('{"prompt": " "}', "empty"),
        ('{"turns": "a"}', "turns must be a list"),
        ('{"turns": []}', "at least one"),
        ('{"turns": [1]}', "turns must be a list"),
        ('{"turns": ["a"], "question_id": true}', "question_id"),
        ('{"turns": ["a"], "category": 1}', "category"),
        ('{"turns": ["a"], "reference": "a"}', "reference"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str | bytes, reason: str) -> None:
    """Without file and line nobody finds the one bad line among 480."""
    raw = line.encode() if isinstance(line, str) else line
    path = put(tmp_path, b'{"prompt": "fine"}\n' + raw + b"\n")
    with pytest.raises(ParamError, match=reason) as caught:
        read_tasks(path)
    assert f"{path}, line 2" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the wrong kind must not fill the memory."""
    path = put(tmp_path, '{"prompt": "a"}\n' * 4)
    monkeypatch.setattr(tasks, "_MOST_LINES", 3)
    with pytest.raises(ParamError, match="more than 3 lines"):
        read_tasks(path)
    monkeypatch.setattr(tasks, "_MOST_BYTES", 20)
    with pytest.raises(ParamError, match="larger than"):
        read_tasks(path)
    with pytest.raises(ParamError, match="holds no tasks"):
        read_tasks(put(tmp_path, "\n"))
    with pytest.raises(ParamError, match="cannot read"):
        read_tasks(tmp_path)
    with pytest.raises(ParamError, match="cannot read"):
        read_tasks(tmp_path / "missing")
