"""The lessons that ship hold: every claim is computed. And the checker says no where an author is wrong."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from app.store.lessons import Lessons
from app.store.recordings import Recordings
from app.store.run_costs import RunCosts
from tools.glossary import MODULE, module
from viz.lessons.__main__ import main
from viz.lessons.check import MOST_RECORDED_BYTES, check_folder
from viz.lessons.lesson import FOLDER
from viz.lessons.page_lesson import LessonWriter
from viz.lessons.reader import read_lesson
from viz.lessons.sources import RunLibrary

LESSONS = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "glossary")
LIBRARY = RunLibrary()


def test_the_lessons_hold() -> None:
    """Every number, quoted word, node and verdict in them follows from the recordings, within five seconds."""
    before = time.process_time()
    assert check_folder() == []
    assert time.process_time() - before < 5
    assert len(LESSONS) == 15


def test_their_recordings_are_small() -> None:
    assert 0 < sum(path.stat().st_size for path in FOLDER.glob("*.gz")) <= MOST_RECORDED_BYTES


def test_every_recording_is_shown_in_a_lesson_or_by_the_cost_tab() -> None:
    """What neither names would travel with every checkout for nothing."""
    named = {run for lesson in LESSONS for run in read_lesson(FOLDER / f"{lesson}.md").runs.values()}
    recorded = {path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.gz")}
    cost = {run for runs in RunCosts(Recordings(), Lessons()).of_trees().values() for run in runs.values()}
    assert recorded <= named | cost


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("lesson", "old", "new", "words"),
    [
        ("verify", "@right n3 =", "@right n4 =", "the file says n4, and first_rejected(pl 4) is n3"),
        ("law", "@right 60 =", "@right 61 =", "the file says 61, and best_of_hundred(0.6 0.9) is 60"),
        ("verify", "{{passes(ar)}}", "{{passes(zz)}}", "'zz' is no run"),
        ("verify", "{{passes(ar)}}", "{{miracles(ar)}}", "is no fact"),
        ("verify", "{{token(pl 4 n1)}}", "{{token(pl 4 n99)}}", "'n99' is no node"),
        ("verify", "{{token(pl 4 n1)}}", "{{token(pl 400 n1)}}", "there is no step 400"),
        ("verify", "{{token(pl 4 n1)}}", "{{p(ar 4 n0)}}", "does not record"),
        ("verify", "pl: smollm2-spelling-prompt_lookup", "pl: nothing", "there is no recording 'nothing'"),
        ("verify", "pl: smollm2-spelling-prompt_lookup", "pl: ../../README", "there is no recording"),
        ("verify", "@show pl 4p", "@show pl 40p", "has 8 steps"),
        (
            "verify",
            "@show pl 4p",
            "@show pl 4a",
            "verify.md:38: the stage shows the answer: ask for first_rejected(pl 4)",
        ),
        ("verify", "@show pl 4p", "@show pl 4c", "at phase p, v or w of step 4"),
        ("verify", "@show pl 4p", "@show pl 5p", "the stage shows the answer"),
        ("medusa", "@show fig 3v focus=n6", "@show fig 3v view=mask", "the mask is kept back while a question is open"),
        ("medusa", "@show best 3p", "@show best 3c", "the stage shows the answer: ask for accepted(best 3)"),
        ("ouroboros", "@show ou 2c", "@show ou 3p", "ask for step_drafter_passes(ou 3) before step 3"),
        ("medusa", "@show best 10c", "@show fig 10c", "the timeline shows all steps: ask for passes(fig)"),
        ("verify", "focus=n1,n2,n3,n4,n5", "focus=n3", "the outline gives the answer away"),
        ("verify", "Let it guess up to 16.", "Up to 16: {{passes(k16)}}.", "states passes(k16)"),
        ("verify", "Two passes later", "Not {{first_rejected(pl 4)}}.", "states first_rejected(pl 4)"),
        ("debug", "percent(drafter-slow right-V", "percent(drafter-mended right-V", "states percent(drafter-mended"),
        ("verify", "focus=n1,n2,n3,n4,n5", "focus=n77", "has n0 to n5"),
        ("verify", "view=timeline", "view=window", "has no view 'window'"),
        ("verify", "5=k5", "5=ar", "one model, one prompt and one method"),
        ("debug", "@chart slow-drafter speedup", "@chart nothing speedup", "no run folder 'nothing' in assets/runs"),
        ("debug", "@chart slow-drafter speedup", "@chart ../traces speedup", "a screen has one @chart"),
        ("verify", "glossary:guess", "glossary:nothing", "the glossary has no entry 'nothing'"),
        ("verify", "{#pass}", "{#copier}", "two screens have the same anchor"),
        ("verify", "needs: slow", "needs: verify", "it needs itself"),
        ("verify", "needs: slow", "needs: nothing", "it needs the lesson 'nothing'"),
        ("verify", "number: 2", "number: 1", "another lesson has the number 1 too"),
        ("verify", "id: verify", "id: other", "the id of a lesson is its file's name"),
        ("verify", "Now a second machine helps.", "Now " + "word " * 30 + "ends.", "a sentence has at most 25 words"),
        ("verify", "Now a second machine helps.", "Some words. " * 40, "words; 70 are read"),
        ("verify", "@dial paper", "@dial idea", "has an @dial for each"),
        ("verify", "prompt-lookup-uses-the-prompt-better", "nothing", "is no claim of docs/paper_checks.md"),
        ("slow", "cost(cpu-2-cores:smollm2 16)", "cost(cpu-2-cores:smollm2 17)", "were not measured"),
        ("slow", "cost(cpu-2-cores:smollm2 16)", "cost(moon 16)", "there is no file moon.json"),
    ],
)
def test_the_checker_says_no(tmp_path: Path, lesson: str, old: str, new: str, words: str) -> None:
    """One planted mistake in a lesson that holds."""
    for name in ("slow", "verify"):
        (tmp_path / f"{name}.md").write_text((FOLDER / f"{name}.md").read_text(encoding="utf-8"), encoding="utf-8")
    text = (FOLDER / f"{lesson}.md").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / f"{lesson}.md").write_text(text.replace(old, new, 1), encoding="utf-8")
    problems = [problem for problem in check_folder(tmp_path, LIBRARY) if problem.startswith(f"{lesson}.md:")]
    assert any(words in problem for problem in problems), problems


def test_the_player_has_the_glossary_of_the_lessons() -> None:
    """One list: a word that is explained in two ways is not explained."""
    assert MODULE.read_text(encoding="utf-8") == module(), "run python -m tools.glossary"


def test_the_runs_of_a_slider_differ_in_one_setting(tmp_path: Path) -> None:
    """A slider over runs that also differ elsewhere shows what nobody asked for."""
    text = (FOLDER / "lookahead.md").read_text(encoding="utf-8").replace("needs: jacobi", "needs:")
    (tmp_path / "lookahead.md").write_text(text.replace("w4: lesson-lookahead-w4", "w4: lookahead"), encoding="utf-8")
    assert any("differ in one setting, not in" in problem for problem in check_folder(tmp_path, LIBRARY))


@pytest.mark.slow
def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0
    assert "nothing wrong" in capsys.readouterr().out
    (tmp_path / "mine.md").write_text("no lesson", encoding="utf-8")
    assert main(["check", str(tmp_path)]) == 1
    assert "mine.md:1: " in capsys.readouterr().out
    assert main(["chek"]) == 2
    assert main(["check", str(tmp_path / "nothing")]) == 2  # not "nothing wrong"
    assert "holds no lesson" in capsys.readouterr().err


def test_a_lesson_for_the_page_holds_no_fact_unread() -> None:
    """What a visitor reads is text: no {{ }} and no markup is left."""
    for name in LESSONS:
        lesson = LessonWriter(read_lesson(FOLDER / f"{name}.md"), LIBRARY).lesson_json()
        words = str(lesson)
        assert ("'screen': 'screen=cost'" in words) == (name == "cost")
        assert "{{" not in words and "](" not in words and "**" not in words
