"""What decoding costs here: measured in parts, saved, resumed, and marked where it is noisy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.cost import sweep
from analysis.cost.passes import PassTimes, Rounds, TreeTimes, WrongTree, measure_passes, wrong_guesses
from decoding.toy import toy
from viz.lessons.sources import RunLibrary

TREES = (WrongTree(1, 0), WrongTree(1, 3), WrongTree(3, 2))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing that the user has measured is read or replaced."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "specscope" / "costs"


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few small trees, and one method."""
    monkeypatch.setattr(sweep, "ROWS", (1, 2, 4))
    monkeypatch.setattr(sweep, "K", (1, 2))
    monkeypatch.setattr(sweep, "W", (1, 2))
    monkeypatch.setattr(sweep, "METHODS", ("autoregressive", "jacobi"))


def test_every_step_reads_the_tree_whose_turn_it_is() -> None:
    run = toy().decode([1, 2, 3], wrong_guesses(TREES), max_new_tokens=60, end_tokens=(), record="light")
    steps = [next(run) for _ in range(6)]
    assert [len(step.tokens) for step in steps] == 2 * [tree.rows for tree in TREES]
    assert all(step.parents[1:4:2] == (0, 0)[: len(step.parents[1:4:2])] for step in steps if len(step.tokens) == 7)


@pytest.mark.parametrize(
    ("disturbed", "rounds", "noisy"),
    [([False, False], 2, False), ([True, False, True, False], 4, False), (4 * [True], 4, True)],
)
def test_disturbed_rounds_are_measured_again(
    monkeypatch: pytest.MonkeyPatch, disturbed: list[bool], rounds: int, noisy: bool
) -> None:
    """Their times do not count, unless there are no others: then every tree is marked."""

    taken = iter(disturbed)

    def take(rounds: Rounds, trees: object) -> tuple[bool, TreeTimes]:
        spoilt = next(taken)
        return spoilt, {tree: 4 * [9.0 if spoilt else 1.0] for tree in TREES}

    monkeypatch.setattr(Rounds, "take", take)
    times = measure_passes(toy(), 8, TREES, rounds=2, again=2)
    assert (times.rounds, times.disturbed) == (rounds, sum(disturbed))
    assert {times.milliseconds(tree) for tree in TREES} == {9.0 if noisy else 1.0}
    assert times.noisy == (list(TREES) if noisy else [])


@pytest.mark.parametrize("differing", [[1.0, 1.0, 9.0, 9.0], [1.0, 1.3]])
def test_times_that_differ_are_measured_again_alone(monkeypatch: pytest.MonkeyPatch, differing: list[float]) -> None:
    asked = list[object]()

    def take(rounds: Rounds, trees: object) -> tuple[bool, TreeTimes]:
        asked.append(trees)
        first = len(asked) == 1
        steady = {tree: 4 * [1.0] for tree in TREES[1:]} if first else {}
        return False, steady | {TREES[0]: differing if first else 40 * [1.0]}

    monkeypatch.setattr(Rounds, "take", take)
    times = measure_passes(toy(), 8, TREES, rounds=1, again=3)
    assert asked == [TREES, [TREES[0]]] and times.milliseconds(TREES[0]) == 1.0 and not times.noisy


def test_a_text_is_read_anew_only_once_a_run_has_grown_too_long() -> None:
    """A pass over its prompt may take as long as all rounds."""
    times = PassTimes(60, TREES)
    rounds = Rounds(toy(), times)
    for taken in (TREES, [TREES[1]], TREES[1:]):
        disturbed, sample = rounds.take(taken)
        assert [*sample] == [*taken] and all(len(each) == 2 and min(each) > 0 for each in sample.values())
    assert len(times.prefill) == 2  # nine steps and three fit into twelve, six more do not


def test_a_stopped_sweep_resumes(brief: None, cache: Path) -> None:
    """Parts that were measured are saved and not measured again."""
    engine, seen = toy(), list[str]()

    def stop(what: str, share: float) -> None:
        seen.append(what)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.sweep(engine, "toy", ["On Monday"], contexts=(8, 16), rounds=1, progress=stop)
    (saved,) = cache.iterdir()
    first = json.loads(saved.read_text())["shapes"]
    whole = sweep.sweep(
        engine, "toy", ["On Monday"], contexts=(8, 16), rounds=1, progress=lambda what, _: seen.append(what)
    )
    assert whole["shapes"][0] == first[0] and seen.count(seen[0]) == 1
    assert [shape["context"] for shape in whole["shapes"]] == [8, 16] == [tree["context"] for tree in whole["trees"]]
    assert [row["method"] for row in whole["methods"]] == ["autoregressive", "jacobi"]
    assert sweep.sweep(engine, "toy", ["On Monday"], contexts=(8, 16), rounds=1) == whole
    saved.write_text('{"shapes": [')  # by a version that did not write it in one move
    assert sweep.sweep(engine, "toy", ["On Monday"], contexts=(8,), rounds=1)["shapes"]


def test_lessons_read_what_is_measured(brief: None, tmp_path: Path) -> None:
    """The files of named machines are written by the same command."""
    report = sweep.sweep(toy(), "toy", ["On Monday"], contexts=(8,), rounds=1)
    (tmp_path / "here.json").write_text(json.dumps(report))
    cost = RunLibrary(costs=tmp_path).device("here:toy")
    assert cost.rows == (1, 2, 4) and cost.cost(1) == 1.0 and min(cost.times) > 0
