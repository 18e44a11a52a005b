"""Prompt sets from files that others wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.prompts import tasks
from analysis.prompts.tasks import Task, read_tasks, spread
from decoding import ParamError


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


def test_lines_shaped_like_spec_bench_s_own_are_read(tmp_path: Path) -> None:
    """Its kinds differ in their references: one a turn, some of them empty, none, or a list of right answers."""
    lines = [
        {"question_id": 81, "category": "writing", "turns": ["Write a post.", "Rewrite it."]},
        {"question_id": 101, "category": "reasoning", "turns": ["Who is last?", "Why?"], "reference": ["Ann.", ""]},
        {"question_id": 111, "category": "math", "turns": ["2 + 2?", "Twice?"], "reference": ["4", "8"]},
        {"question_id": 161, "category": "translation", "turns": ["Translate: T\u00fcr"], "reference": ["Door"]},
        {"question_id": 241, "category": "summarization", "turns": ["Summarize: It rained."], "reference": ["Rain."]},
        {"question_id": 321, "category": "qa", "turns": ["Who has the key?"]},
        {"question_id": 401, "category": "math_reasoning", "turns": ["3 * 2?"], "reference": ["<<3*2=6>>6\n#### 6"]},
        {"question_id": 481, "category": "rag", "turns": ["A lamp.\nOf what?"], "reference": [["Iron", "Cast iron"]]},
    ]
    path = put(tmp_path, "\n".join(map(json.dumps, lines)))
    assert read_tasks(path) == (
        Task(81, "writing", ("Write a post.", "Rewrite it.")),
        Task(101, "reasoning", ("Who is last?", "Why?"), ("Ann.", "")),
        Task(111, "math", ("2 + 2?", "Twice?"), ("4", "8")),
        Task(161, "translation", ("Translate: T\u00fcr",), ("Door",)),
        Task(241, "summarization", ("Summarize: It rained.",), ("Rain.",)),
        Task(321, "qa", ("Who has the key?",)),
        Task(401, "math_reasoning", ("3 * 2?",), ("<<3*2=6>>6\n#### 6",)),
        Task(481, "rag", ("A lamp.\nOf what?",), ("Iron",)),
    )


@pytest.mark.parametrize(
    "kind", ["writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"]
)
def test_kinds_of_mt_bench_have_their_own_names(tmp_path: Path, kind: str) -> None:
    """Spec-Bench's file names its chats by MT-bench's eight kinds; a report that renamed them could not be compared."""
    line = {"question_id": 90, "category": kind, "turns": ["Begin.", "Go on."]}
    (task,) = read_tasks(put(tmp_path, json.dumps(line)))
    assert task.category == kind


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
        ('{"turns": ["a"], "reference": [[]]}', "reference"),
        ('{"turns": ["a"], "reference": [[["a"]]]}', "reference"),
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
        read_tasks(tmp_path / "missing")


def test_a_few_tasks_are_of_every_kind() -> None:
    """The first of each kind before the second of any, in the file's order: a few must stand for all."""
    kinds = "aaabbc"
    tasks = [Task(number, kind, ("?",)) for number, kind in enumerate(kinds)]
    chosen = {limit: [task.id for task in spread(tasks, limit)] for limit in (1, 3, 4, 5, 9, None)}
    every = [0, 1, 2, 3, 4, 5]
    assert chosen == {1: [0], 3: [0, 3, 5], 4: [0, 1, 3, 5], 5: [0, 1, 3, 4, 5], 9: every, None: every}


def test_a_folder_of_texts_is_a_prompt_set(tmp_path: Path) -> None:
    """Texts that somebody has lying around need no JSON around them; what is no text is named."""
    (tmp_path / "b.txt").write_text("Second.\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text(" First,\nin two lines. ", encoding="utf-8")
    (tmp_path / "notes.md").write_text("none", encoding="utf-8")
    assert read_tasks(tmp_path) == (Task("a", "text", ("First,\nin two lines.",)), Task("b", "text", ("Second.",)))
    assert [task.id for task in read_tasks(tmp_path, limit=1)] == ["a"]
    (tmp_path / "c.txt").write_bytes(b"\xff")
    with pytest.raises(ParamError, match=r"c\.txt is not a text"):
        read_tasks(tmp_path)
    (tmp_path / "c.txt").write_bytes(b" \n")
    with pytest.raises(ParamError, match=r"c\.txt is empty"):
        read_tasks(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ParamError, match=r"no file that ends in \.txt"):
        read_tasks(tmp_path / "empty")
