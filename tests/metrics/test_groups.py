"""Acceptance by category, context and entropy, counted by hand."""

from __future__ import annotations

import pytest

from analysis.metrics import measure

from .tables import run, selection, step

RUNS = [
    run(0, "a", category="code"),
    run(1, "b", category="chat"),
    run(2, "c", category="chat"),
    run(3, "d", category=None),
]
STEPS = [
    step(1, 3, 4, start=100, entropy=0.05),
    step(2, 1, 4, start=128, entropy=0.1),
    step(1, 0, 4, of=1, start=127, entropy=2.5),
    step(1, 2, 4, of=2, start=40_000, entropy=None),
    step(2, 0, 0, of=2, start=40_001, entropy=9.0),
    step(1, 1, 1, of=3, start=0, entropy=0.0),
]
ALL = selection(RUNS, STEPS)


def rows(key: str) -> list[list]:
    """Name, questions, steps, tokens per step, acceptance rate."""
    return [row[:4] + row[6:] for row in measure(key, ALL)["rows"]]


def test_by_category() -> None:
    """Code: 4 + 2 tokens in 2 steps, 4 of 8 guesses. Chat: 1 + 3 + 1 in 3, 2 of 8. What has no category is left out."""
    assert rows("by_category") == [["code", 1, 2, 3.0, 0.5], ["chat", 2, 3, pytest.approx(5 / 3), 0.25]]
    result = measure("by_category", ALL)
    assert result["where"] == [[("runs", "category", "=", "code")], [("runs", "category", "=", "chat")]]
    assert "code (3.00)" in result["sentence"] and "chat (1.67)" in result["sentence"]


def test_by_context() -> None:
    """A bin takes its lower edge and not its upper one."""
    assert rows("by_context") == [
        ["0 to 128", 3, 3, pytest.approx((4 + 1 + 2) / 3), pytest.approx(4 / 9)],
        ["128 to 256", 1, 1, 2.0, 0.25],
        ["from 32768", 1, 2, 2.0, 0.5],
    ]
    assert measure("by_context", ALL)["where"][1] == [("steps", "start", ">=", 128), ("steps", "start", "<", 256)]


def test_by_entropy() -> None:
    """A step of unknown entropy is in no bin; a bin without a guess has no rate."""
    assert rows("by_entropy") == [
        ["0 to 0.1", 2, 2, 3.0, 0.8],
        ["0.1 to 0.3", 1, 1, 2.0, 0.25],
        ["2 to 3", 1, 1, 1.0, 0.0],
        ["from 3", 1, 1, 1.0, None],
    ]


def test_groups_that_write_the_same_are_not_called_one_group() -> None:
    """As where no step has a guess: the greatest group and the smallest one are then the same row."""
    runs = [run(0, "a", category="code"), run(1, "b", category="chat")]
    both = measure("by_category", selection(runs, [step(0, 0), step(0, 0, of=1)]))
    assert both["sentence"] == "All groups write 1.00 tokens per step."
    one = measure("by_category", selection(runs[:1], [step(0, 0)]))
    assert one["sentence"] == "All steps are in one group, category code: 1.00 tokens per step."


def test_a_group_of_a_few_steps_is_not_called_the_best() -> None:
    """One step of 6 tokens among 222 others was "most tokens per step at context 128 to 256"."""
    short = [step(at, at % 2, 4, start=at) for at in range(6)]
    all_but_one = measure("by_context", selection(RUNS, [*short, step(6, 4, 4, start=200)]))
    assert all_but_one["sentence"] == "All steps but 1 are in one group, context 0 to 128: 1.50 tokens per step."
    long = [step(at, 2, 4, start=300 + at) for at in range(7, 12)]
    sentence = measure("by_context", selection(RUNS, [*short, step(6, 4, 4, start=200), *long]))["sentence"]
    assert sentence == "Most tokens per step at context 256 to 512 (3.00), fewest at 0 to 128 (1.50)."


def test_without_categories_there_is_a_reason() -> None:
    result = measure("by_category", selection([run(category=None)], [step(0, 0)]))
    assert result["reason"] == "the questions of this record have no categories"


def test_guesses_that_are_counted_for_whole_runs_make_a_categorys_rate() -> None:
    """Of the runs whose steps say how many guesses they had alone, it would be another category's rate."""
    counted = {"drafted": 10, "accepted": 4}
    runs = [run(0, "a", category="code", **counted), run(1, "b", category="code"), run(2, "c", category="chat")]
    steps = [step(1, 3), step(2, 1), step(1, 1, 2, of=1), step(1, 2, 4, of=2)]
    result = measure("by_category", selection(runs, steps))
    assert [(row[0], row[6]) for row in result["rows"]] == [("code", 5 / 12), ("chat", 0.5)]
    unknown = measure("by_category", selection([run(0, "a", category="code")], [step(1, 3)]))
    assert unknown["rows"][0][6] is None
