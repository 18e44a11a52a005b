"""The recordings of lessons are what their recipes make."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from decoding import load, read_trace
from tools import record_lessons
from tools.lesson_counts import count_successors
from viz.lessons.lesson import FOLDER
from viz.lessons.sources import COUNTS, RunLibrary


def test_every_recipe_has_its_file() -> None:
    recipes = [recipe.id for recipe in record_lessons.recipes()]
    assert len(set(recipes)) == len(recipes)
    assert {path.name for path in FOLDER.glob("*.gz")} == {f"lesson-{name}.jsonl.gz" for name in recipes}


def test_a_recording_is_made_again_token_by_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["record_lessons", "--only", "letters", "--out", str(tmp_path)])
    record_lessons.main()
    for gamma in (1, 3):
        old, new = (read_trace(folder / f"lesson-letters-{gamma}.jsonl.gz") for folder in (FOLDER, tmp_path))
        assert old.ids == new.ids and [step.tokens for step in old.steps] == [step.tokens for step in new.steps]
        assert [step.p for step in old.steps] == [step.p for step in new.steps]


def test_only_fair_rules_write_sixty_as_in_a_hundred() -> None:
    """A wrong rule that looked fair, or a fair one that did not, would teach the opposite; four standard deviations."""
    recorded = json.loads((FOLDER / COUNTS).read_text(encoding="utf-8"))
    few = record_lessons.count_letters(2_000)
    kept = {name: recorded[name] for name in few}
    for counts, letters in ((kept, 50_000), (few, 2_000)):
        for rule, tally in counts.items():
            assert tally["A"] + tally["B"] == letters
            far = abs(tally["A"] / letters - 0.6) > 4 * math.sqrt(0.6 * 0.4 / letters)
            assert far == (rule in ("letters-keep_all", "letters-redraw")), rule


@pytest.mark.slow  # 100 runs with 63 guesses a step
def test_only_typical_acceptance_always_writes_the_same_token() -> None:
    """The fair rule writes each token as often as the target does, within four standard deviations."""
    recorded = json.loads((FOLDER / COUNTS).read_text(encoding="utf-8"))
    chances = dict(RunLibrary().trace("medusa-typical").steps[2].top[0])
    assert sum(chances.values()) > 0.99
    for counts, runs in ((recorded, 1000), (count_successors(load("pocket"), 50), 50)):
        assert counts["after-cards-typical"] == {"with": runs}
        fair = sorted(counts["after-cards-lossless"].values(), reverse=True)
        for count, p in zip(fair, sorted(chances.values(), reverse=True), strict=False):
            assert abs(count / runs - p) <= 4 * math.sqrt(p * (1 - p) / runs)
