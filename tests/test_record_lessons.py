"""The recordings of lessons are what their recipes make."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from analysis.prompts.tasks import read_tasks, spread, suite
from decoding import load, read_trace
from tools import record_lessons
from tools.lesson_counts import count_blocks, count_forms, count_positions, count_successors
from viz.lessons.lesson import FOLDER
from viz.lessons.run_facts import draft_ms
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


def test_a_block_of_seven_takes_little_longer_than_one_guess() -> None:
    """The times of a machine that was busy would teach something else."""
    times = {
        method: [draft_ms(RunLibrary().trace(f"lesson-{method}-{guesses}")) for guesses in (1, 7)]
        for method in ("dflash", "eagle-chain")
    }
    (block_of_one, block), (one, chain) = times.values()
    assert one < block_of_one < block < 2 * block_of_one < chain and chain > 4 * one


def test_how_far_blocks_and_chains_are_right_is_counted_from_the_steps() -> None:
    """From the nodes of a record, which know the path; one question of each kind, and all 70 in the long tests."""
    pocket, kinds = load("pocket"), 7
    counts = count_positions(pocket, kinds)
    for method in ("dflash", "eagle3"):
        tried, right = Counter[int](), Counter[int]()
        for task in spread(read_tasks(suite("pocket")), kinds):
            answer = pocket.generate(
                pocket.as_turn(task.turns[0]), method, {"form": "chain", "gamma": 7}, None, 160, record="light"
            )
            for step in answer.trace.steps:
                for node in range(1, len(step.tokens)):
                    tried[node] += step.parents[node] in step.path
                    right[node] += node in step.path
        tally = counts[f"positions-{method}"]
        assert [tally[f"tried-{place}"] for place in range(1, 8)] == [tried[place] for place in range(1, 8)]
        assert [tally[f"right-{place}"] for place in range(1, 8)] == [right[place] for place in range(1, 8)]


@pytest.mark.nightly  # 70 questions twice, and 60 sampled answers: 90 seconds
def test_what_the_lesson_on_blocks_counts_is_counted_again() -> None:
    """Greedy counts to the last one; sampled ones too, since a seed and exact arithmetic leave no choice."""
    recorded = json.loads((FOLDER / COUNTS).read_text(encoding="utf-8"))
    pocket = load("pocket")
    for name, counts in (count_positions(pocket) | count_blocks(pocket) | count_forms(pocket)).items():
        assert recorded[name] == counts, name
    of, forms = recorded["positions-dflash"], {name: recorded[f"dflash-{name}"] for name in ("chain", "drawn", "tree")}
    chain = recorded["positions-eagle3"]
    assert of["right-1"] / of["tried-1"] > 0.8 and of["right-7"] / of["tried-1"] < chain["right-7"] / chain["tried-1"]
    assert forms["tree"]["tokens"] / forms["tree"]["passes"] > forms["drawn"]["tokens"] / forms["drawn"]["passes"]


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
