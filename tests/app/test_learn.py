"""The Learn page's calls: lessons in order, hostile names refused, and a broken file stops nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from app.address import parse
from app.controls import runnable
from app.models.catalog import default_catalog
from app.pages.learn import functions
from app.pages.lessons_ahead import LessonsAhead
from app.state import AppState
from app.store.lessons import Lessons
from decoding.errors import TraceError
from viz.lessons.lesson import FOLDER
from viz.lessons.sources import RunLibrary


def test_lessons_are_listed_as_they_are_taught() -> None:
    contents = Lessons().contents()
    ids = [each["id"] for each in contents]
    taught = ["slow", "verify", "law", "jacobi", "lookahead", "medusa", "eagle", "dflash", "cost"]
    assert [name for name in ids if name in taught] == taught
    assert all(each["questions"] >= 2 and len(each["anchors"]) >= 6 for each in contents)


@pytest.mark.parametrize(
    "asked", ["", "nothing", "../slow", None, 3, ["slow"], {"id": "slow"}, "slow\x00", "x" * 10_000]
)
def test_a_name_that_is_no_lesson_is_refused(asked: object) -> None:
    with pytest.raises(TraceError, match="there is no lesson"):
        Lessons().lesson(asked)


@pytest.mark.parametrize("run", ["../verify", "glossary", "", "slow.md", "/etc/passwd", "lesson-lookup-k1.jsonl"])
def test_a_name_that_is_no_recording_has_no_file(run: str) -> None:
    assert Lessons().packed(run) is None


def test_a_lesson_arrives_whole_and_its_runs_open() -> None:
    app_state = AppState()
    call = next(function for function in functions(app_state) if function.__name__ == "learn_lesson")
    lesson = call("verify")["lesson"]
    assert lesson["id"] == "verify" and len(lesson["screens"]) == 7
    assert "there is no lesson" in call("nope")["fault"].lower()
    assert app_state.calls.open_run("lesson-lookup-k16")["lines"].count('"kind":"step"') == 5


def test_a_lesson_that_an_address_names_is_made_once_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    app_state = AppState()
    ahead = LessonsAhead(app_state)
    assert ahead.begin("") is None and ahead.begin("../slow") is None
    worker = ahead.begin("jacobi")
    assert worker is not None and ahead.begin("jacobi") is None
    worker.join()
    for module in ("viz.lessons.sources.read_trace", "app.store.recordings.replay"):  # all that takes long
        monkeypatch.setattr(module, None)
    screen = app_state.lessons.lesson("jacobi")["screens"][0]
    assert '"kind":"end"' in app_state.calls.open_run(screen["show"]["runs"][0])["lines"]


def test_a_lesson_whose_run_is_gone_is_not_made_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its visitor gets the sentence by the page's own call."""
    app_state = AppState()
    monkeypatch.setattr(app_state.recordings, "_folder", Path("/no/such/folder"))
    worker = LessonsAhead(app_state).begin("jacobi")
    assert worker is not None
    worker.join()
    with pytest.raises(TraceError, match="cannot be read on this server"):
        app_state.calls.open_run("smollm2-prime-jacobi")


def test_a_lessons_recording_is_titled_by_its_lesson(tmp_path: Path) -> None:
    """Whoever opens it by its address has not made it: it is not their run."""
    app_state = AppState()
    title = app_state.lessons.lesson("verify")["title"]
    host = json.loads(app_state.calls.open_run("lesson-lookup-k16")["lines"].partition("\n")[0])
    assert host["kind"] == "host" and host["title"] == f"Lesson: {title}"
    for run in app_state.lessons.recordings():
        assert app_state.lessons.title_of(run) != f"Lesson: {run}"
    assert [app_state.lessons.title_of(run) for run in ("lookahead", "../verify", "", None, 3, ["slow"])] == [None] * 6
    assert Lessons(tmp_path).title_of("lesson-lookup-k16") is None


def test_a_link_to_a_run_fills_the_form() -> None:
    """A model that the page does not offer would be passed over in silence."""
    texts = [path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")]
    links = [link for text in texts for link in re.findall(r"\]\((screen=run[^)]*)\)", text)]
    assert links
    for link in links:
        state = parse(dict(parse_qsl(link)), default_catalog())
        assert state.problems == [] and state.model and state.method in runnable(default_catalog()[state.model])


@pytest.mark.slow
def test_a_chart_of_the_debug_page_shows_the_lessons_numbers() -> None:
    """Each link of a lesson opens a chart as it stands, and what it shows is what the lesson counts."""
    app_state = AppState()
    links = [
        screen["chart"]
        for each in app_state.lessons.contents()
        for screen in app_state.lessons.lesson(each["id"])["screens"]
        if screen["chart"]
    ]
    assert len(links) >= 5
    rows: dict[str, list[list[Any]]] = {}
    for link in links:
        opened = app_state.debug.call("open", link)
        assert opened["notice"] == "" and f"&chart={opened['chart']}" in link and f"folder={opened['folder']}&" in link
        [result] = app_state.debug.call("chart", [opened["address"], opened["chart"]])["results"]
        assert result["rows"] and not result["reason"]
        rows[f"{opened['folder']} {opened['chart']}"] = result["rows"]
    for name, folder in (("drafter-slow", "slow-drafter"), ("drafter-mended", "slow-drafter-mended")):
        counts = RunLibrary().counts(name).counts
        shown = {position: (right, tried) for position, right, tried, *_ in rows[f"{folder} conditional_acceptance"]}
        assert shown == {n: (counts[f"right-{n}"], counts[f"tried-{n}"]) for n in range(1, len(shown) + 1)}
        assert f"right-{len(shown) + 1}" not in counts
    ranks = [count for _, count, *_ in rows["slow-drafter rank_histogram"]]
    counts = RunLibrary().counts("drafter-slow").counts
    assert (sum(ranks), ranks[0], sum(ranks[:5])) == (counts["ranked"], counts["first"], counts["listed"])


def test_a_broken_lesson_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "slow.md").write_text("broken", encoding="utf-8")
    (tmp_path / "verify.md").write_text((FOLDER / "verify.md").read_text(encoding="utf-8"), encoding="utf-8")
    lessons = Lessons(tmp_path)
    assert [each["id"] for each in lessons.contents()] == ["verify"] and lessons.glossary == {}
    assert "slow.md:1: " in caplog.text
