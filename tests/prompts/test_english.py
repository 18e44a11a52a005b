"""Our own prompts in English: they hold what they promise, and their answers are right."""

from __future__ import annotations

import ast
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from analysis.prompts import tasks
from analysis.prompts.tasks import ENGLISH, SUITES, Task, read_tasks
from cli.bench import read_questions
from decoding import ParamError, smollm2

KINDS = ("conversation", "translation", "summarization", "qa", "math_reasoning", "rag", "code")
ANSWERED = ("translation", "qa", "math_reasoning", "rag")  # kinds with one right answer, or one as good as any
LANGUAGES = ("French", "German", "Spanish", "Italian")
# The numbers of each arithmetic answer, computed from those of its question.
ANSWERS = {
    41: [14 * 36 - 87 + 29],
    42: [4 * (5 * (7 + 7) + 32)],
    43: [Fraction(450, 6) * 10, Fraction(3, 6) * 10],
    44: [120 * Fraction(75, 100) - 10],
    45: [(84 + 110) * Fraction(5, 2)],
    46: [(18 - 2) * (11 - 2)],
    47: [Fraction(84 * 5 + 45, 3) - 60],
    48: [Fraction(900 - 900 // 3, 25 - 5)],
    49: [Fraction(6 + 8 + 9 + 5 + 7 + 10 + 4 + 9, 8)],
    50: [400 * Fraction(105, 100) ** 3],
}


@pytest.fixture(scope="module")
def english() -> tuple[Task, ...]:
    return read_tasks(SUITES[ENGLISH])


def of(kind: str, english: tuple[Task, ...]) -> list[Task]:
    return [task for task in english if task.category == kind]


def test_every_kind_has_ten_tasks(english: tuple[Task, ...]) -> None:
    """A mean over kinds of different sizes would be the large ones' mean."""
    assert Counter(task.category for task in english) == dict.fromkeys(KINDS, 10)
    assert [task.id for task in english] == list(range(1, 71))


def test_conversations_have_two_turns_and_all_others_one(english: tuple[Task, ...]) -> None:
    assert all(len(task.turns) == (2 if task.category == "conversation" else 1) for task in english)


def test_no_prompt_is_asked_twice(english: tuple[Task, ...]) -> None:
    """A method that remembers earlier answers would copy the second one."""
    turns = [" ".join(turn.lower().split()) for task in english for turn in task.turns]
    assert len(set(turns)) == len(turns)


def test_tasks_with_a_right_answer_have_it(english: tuple[Task, ...]) -> None:
    for task in english:
        assert len(task.reference) == (1 if task.category in ANSWERED else 0), task.id
        assert all(text.strip() == text != "" for text in (*task.turns, *task.reference)), task.id


def test_answers_to_arithmetic_are_right(english: tuple[Task, ...]) -> None:
    asked = of("math_reasoning", english)
    assert {task.id for task in asked} == set(ANSWERS)
    for task in asked:
        assert [Fraction(number) for number in re.findall(r"\d+(?:\.\d+)?", task.reference[0])] == ANSWERS[int(task.id)]


def test_translations_go_to_four_languages(english: tuple[Task, ...]) -> None:
    named = [[language for language in LANGUAGES if language in task.turns[0]] for task in of("translation", english)]
    assert all(len(languages) == 1 for languages in named)
    assert {languages[0] for languages in named} == set(LANGUAGES)


@pytest.mark.parametrize("kind", ["summarization", "rag"])
def test_passages_are_of_a_useful_length(english: tuple[Task, ...], kind: str) -> None:
    """Long enough to copy from, and so short that the prompt stays below some 500 tokens."""
    for task in of(kind, english):
        assert 120 <= len(task.turns[0].split()) <= 310, task.id
        if kind == "rag":
            assert "[1]" in task.turns[0] and "[3]" in task.turns[0] and "Question: " in task.turns[0], task.id


def code_of(task: Task) -> str:
    """Return the code that a prompt gives."""
    return "\n".join(re.findall(r"```python\n(.*?)\n```", task.turns[0], flags=re.DOTALL))


def test_given_code_is_python(english: tuple[Task, ...]) -> None:
    """Its faults are the ones that the prompt speaks of, and no slip of ours."""
    given = {task.id: code_of(task) for task in of("code", english)}
    assert sum(bool(code) for code in given.values()) == 6
    for code in given.values():
        ast.parse(code)


@pytest.mark.parametrize(
    ("task", "call", "result"),
    [(63, "average([2, 4, 6])", 2.0), (65, "count_steps(6)", 8), (69, "remember('Cid')", ["Ann", "Ben", "Cid"])],
)
def test_given_code_does_what_its_prompt_says(
    english: tuple[Task, ...], task: int, call: str, result: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug that is none cannot be found."""
    names: dict[str, object] = {}
    exec(code_of(english[task - 1]), names)
    assert eval(call, names) == result
    assert capsys.readouterr().out == ("['Ann']\n['Ann', 'Ben']\n" if task == 69 else "")


def test_a_name_stands_for_the_suite(
    english: tuple[Task, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From any folder, for any model, and for SmolLM2 without a name."""
    monkeypatch.chdir(tmp_path)
    assert read_questions("english", "pocket", None) == english
    assert read_questions("english", "org/model", 3) == (english[0], english[10], english[20])
    assert read_questions(None, smollm2.NAME, None) == english
    (tmp_path / "english").mkdir()
    assert read_questions("english", "pocket", None) == english


def test_a_file_of_that_name_comes_first(
    english: tuple[Task, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever names a file gets it; whoever names none gets the model's own tasks, whatever lies around."""
    (tmp_path / "english").write_text('{"prompt": "mine"}')
    monkeypatch.chdir(tmp_path)
    assert read_questions("english", "pocket", None) == (Task(1, "prompt", ("mine",)),)
    assert read_questions(None, smollm2.NAME, None) == english


def test_a_model_without_tasks_is_advised() -> None:
    with pytest.raises(ParamError, match="--tasks english"):
        read_questions(None, "org/model", None)


@pytest.mark.parametrize("name", [ENGLISH, None])
def test_a_copy_without_the_suite_says_so(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tasks.SUITES, ENGLISH, Path("/no/such/suite"))
    with pytest.raises(ParamError, match="name a file with --tasks"):
        read_questions(name, smollm2.NAME, None)
