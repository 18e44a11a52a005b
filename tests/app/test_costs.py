"""The Cost page's data: curves of measured machines, hostile files, and the steps of recorded runs."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from analysis.cost.curves import SHIPPED
from analysis.cost.grid import tokens_per_step
from app.pages.cost import functions
from app.state import AppState
from app.store.lessons import Lessons
from app.store.pass_costs import pass_costs, shipped_costs
from app.store.recordings import FOLDER
from app.store.run_costs import OPEN, WINDOWS, RunCosts
from benchmarks.written_tokens import SIZES
from decoding.embedded import PARTS
from decoding.errors import TraceError
from decoding.parts.medusa_tree import expected_length, grow
from viz.lessons.lesson import FOLDER as LESSONS

SHAPE = {"shape": "tiny", "context": 16, "rows": [1, 2, 4], "milliseconds": [1.0, 1.5, 2.0]}
MACHINE = {"device": "A machine", "date": "2026-11-26", "dtype": "bfloat16", "versions": "torch 2"}


def written(folder: Path, shapes: object, **facts: object) -> list[dict[str, Any]]:
    (folder / "machine.json").write_text(json.dumps(MACHINE | {"shapes": shapes} | facts), encoding="utf-8")
    return shipped_costs(folder)


def test_every_shipped_curve_is_there() -> None:
    curves = shipped_costs()
    files = [json.loads(path.read_text(encoding="utf-8")) for path in SHIPPED.glob("*.json")]
    assert len(curves) == sum(len(each["shapes"]) for each in files) >= 4
    assert {"cpu-2-cores:smollm2:128", "nvidia-h200:7B:1024"} <= {each["id"] for each in curves}
    assert not any(each["here"] for each in curves)


def test_what_was_measured_here_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The form of the cache is what `cost` saves: more keys than a shipped file, and times that were marked."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert pass_costs() == shipped_costs()
    saved = MACHINE | {"model": "tiny", "threads": 2, "trees": [], "shapes": [SHAPE | {"noisy": [2], "rounds": 3}]}
    (tmp_path / "specscope" / "costs").mkdir(parents=True)
    (tmp_path / "specscope" / "costs" / "tiny-0123.json").write_text(json.dumps(saved), encoding="utf-8")
    first = pass_costs()[0]
    assert first["here"] and first["id"] == "tiny-0123:tiny:16"
    assert (first["threads"], first["noisy"], first["rows"]) == (2, [2], [1, 2, 4])


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [2, 4, 8]},
        {"rows": [1, 4, 2]},
        {"rows": [1, 2]},
        {"rows": [1], "milliseconds": [1.0]},
        {"rows": [1, 2, 2**40]},
        {"rows": [1, 2.5, 3]},
        {"milliseconds": [1.0, 0.0, 2.0]},
        {"milliseconds": [1.0, -1.0, 2.0]},
        {"milliseconds": [1.0, "2", 2.0]},
        {"milliseconds": [1.0, float("nan"), 2.0]},
        {"milliseconds": [1.0, float("inf"), 2.0]},
        {"context": -1},
        {"shape": 3},
        {"shape": None},
    ],
)
def test_a_curve_that_cannot_be_is_left_out_alone(
    tmp_path: Path, change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert [each["model"] for each in written(tmp_path, [SHAPE | change, SHAPE])] == ["tiny"]
    assert "is left out" in caplog.text


TREES = {"shape": "tiny", "context": 16, "k": [1, 4], "w": [2, 3], "single_milliseconds": 2.0}
TREES |= {"milliseconds": [[3.0, 4.0], [5.0, 8.0]], "noisy": [[4, 3]], "rounds": 3}


def test_trees_belong_to_the_curve_of_their_model_and_context(tmp_path: Path) -> None:
    curves = written(tmp_path, [SHAPE, SHAPE | {"context": 32}], trees=[TREES])
    costs = {"k": [1, 4], "w": [2, 3], "costs": [[1.5, 2.0], [2.5, 4.0]], "noisy": [[4, 3]]}
    assert [each["trees"] for each in curves] == [costs, None]


@pytest.mark.parametrize(
    "change",
    [
        {"k": [4, 1]},
        {"k": [0, 1]},
        {"k": [], "milliseconds": []},
        {"w": [2]},
        {"milliseconds": [[3.0, 4.0]]},
        {"milliseconds": [[3.0, 4.0], [5.0, 0.0]]},
        {"milliseconds": [[3.0, 4.0], [5.0, float("inf")]]},
        {"single_milliseconds": -1.0},
        {"noisy": [[4]]},
        {"shape": 3},
    ],
)
def test_trees_that_cannot_be_are_left_out_alone(
    tmp_path: Path, change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert [each["trees"] for each in written(tmp_path, [SHAPE], trees=[TREES | change])] == [None]
    assert "trees are left out" in caplog.text


@pytest.mark.parametrize("trees", [3, "ab", {"k": 1}, None])
def test_trees_that_are_no_list_are_none(tmp_path: Path, trees: object) -> None:
    assert [each["trees"] for each in written(tmp_path, [SHAPE], trees=trees)] == [None]


def test_what_n_grammys_writes_was_counted_for_the_trees_that_are_timed() -> None:
    """A larger tree of longer chains writes no less; the numbers of a model that is timed are there."""
    counted = tokens_per_step("ngrammys")
    timed = [each for each in shipped_costs() if each["trees"]]
    assert timed and {each["model"] for each in timed} <= counted.keys()
    for each in timed:
        grid = counted[each["model"]]
        assert (grid["k"], grid["w"]) == (each["trees"]["k"], each["trees"]["w"])
        assert grid["tokens_per_step"][0][0] > 1
        for lines in (grid["tokens_per_step"], zip(*grid["tokens_per_step"], strict=True)):
            for line in lines:
                assert all(one <= other * 1.02 for one, other in pairwise(line))


@pytest.mark.parametrize("model", ["pocket", "smollm2"])
def test_what_medusas_heads_write_was_counted_by_the_size_of_their_trees(model: str) -> None:
    """A larger tree writes no less, and what is expected of it follows from the heads' accuracies."""
    counted = tokens_per_step("medusa")[model]
    accuracies = json.loads((PARTS[model]["medusa"] / "config.json").read_text(encoding="utf-8"))["accuracies"]
    assert counted["sizes"] == [*SIZES]
    assert counted["expected"] == [round(expected_length(grow(accuracies, size), accuracies), 4) for size in SIZES]
    assert len(counted["tokens_per_step"]) == len(SIZES)
    assert all(1 < one <= other * 1.02 for one, other in pairwise(counted["tokens_per_step"]))


HEADS = {"shape": SHAPE["shape"], "method": "medusa", "draft_milliseconds": 2.0, "disturbed": False}


@pytest.mark.parametrize(
    ("methods", "milliseconds"),
    [
        ([HEADS], 2.0),
        ([[], None, 3, "x", HEADS], 2.0),
        ([HEADS | {"method": "eagle3"}], None),
        ([HEADS | {"shape": "another"}], None),
        ([HEADS | {"disturbed": True}], None),
        ([HEADS | {"draft_milliseconds": float("nan")}], None),
        ([HEADS | {"draft_milliseconds": -1}], None),
        ([HEADS | {"draft_milliseconds": "2"}], None),
        ([HEADS | {"shape": []}], None),
        ({"medusa": 1}, None),
        (None, None),
    ],
)
def test_what_heads_take_is_told_in_passes_of_the_curve(
    tmp_path: Path, methods: Any, milliseconds: float | None
) -> None:
    (curve,) = written(tmp_path, [SHAPE | {"milliseconds": [4.0, 6.0, 8.0]}], methods=methods)
    assert curve["heads"] == (milliseconds and milliseconds / 4.0)


@pytest.mark.parametrize("content", ["", "[[", "[]", "{}", '{"shapes": 3}', "[" * 100_000, "\x00"])
def test_a_file_that_holds_no_costs_is_left_out(tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "broken.json").write_text(content, encoding="utf-8")
    assert shipped_costs(tmp_path) == [] and "broken.json is left out" in caplog.text
    assert shipped_costs(tmp_path / "nowhere") == []


def test_names_of_a_file_are_one_plain_line(tmp_path: Path) -> None:
    """They reach menus and addresses."""
    (curve,) = written(tmp_path, [SHAPE | {"shape": "a/b, c:d\n‮" + "x" * 100}], device="A\nB")
    assert curve["device"] == "A B" and curve["id"] == f"machine:a-b-c-d-{'x' * 56}:16"
    assert len(curve["model"]) == 80 and curve["model"].isprintable()


@pytest.fixture(scope="module")
def costs() -> RunCosts:
    app_state = AppState()
    return RunCosts(app_state.recordings, app_state.lessons)


def test_a_run_gives_the_columns_of_its_steps(costs: RunCosts) -> None:
    """They are read from the file itself here, step by step."""
    answer = costs.of("smollm2-spelling-jacobi")
    assert [each["label"] for each in answer["runs"]][:3] == ["Jacobi", "Lookahead", "Draft model"]
    run = next(each for each in answer["runs"] if each["id"] == "smollm2-spelling-draft_model")

    def steps(name: str) -> list[dict[str, Any]]:
        with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            return [line for line in map(json.loads, lines) if line["kind"] == "step"][1:]

    own, plain = steps(run["id"]), steps("smollm2-spelling-autoregressive")
    assert run["fed"] == [step["fed"] for step in own] and sum(run["wrote"]) == sum(len(s["emitted"]) for s in own)
    pace, plain_pace = (
        sum(len(step["emitted"]) for step in each) / sum(step["timing"]["total_ms"] for step in each)
        for each in (own, plain)
    )
    assert run["later_speedup"] == pytest.approx(pace / plain_pace)
    (one_token,) = [each["milliseconds"] for each in answer["plain"] if each["model"] == "smollm2"]
    assert run["drafting"] == pytest.approx([s["timing"]["draft_ms"] / one_token for s in own], abs=1e-4)
    assert run["recorded"] == "AMD EPYC, 2 threads, bfloat16"


def test_every_speculative_recording_is_in_one_group(costs: RunCosts) -> None:
    groups = costs.groups()
    listed = [each.id for each in AppState().recordings if each.method != "autoregressive"]
    assert {each["id"] for each in groups} <= set(listed) and len({each["id"] for each in groups}) == len(groups)
    assert costs.of(OPEN)["runs"] == [] and len(costs.of(OPEN)["plain"]) == 2


def test_windows_are_those_that_the_lesson_recorded(costs: RunCosts) -> None:
    windows = costs.of(WINDOWS)["windows"]
    assert [each["window"] for each in windows] == [1, 2, 4, 8, 16, 32] and {each["n"] for each in windows} == {5}
    with gzip.open(LESSONS / "lesson-lookahead-w8.jsonl.gz", "rt", encoding="utf-8") as lines:
        steps = [line for line in map(json.loads, lines) if line["kind"] == "step"][1:]
    assert len({Lessons().trace(each["id"]).header.prompt for each in windows}) == 1, (
        "they are called runs of one prompt"
    )
    assert windows[3]["id"] == "lesson-lookahead-w8" and windows[3]["wrote"] == [len(s["emitted"]) for s in steps]


def test_every_tree_that_was_counted_has_a_recorded_run_on_one_prompt(costs: RunCosts) -> None:
    runs = costs.of_trees()
    grid, sizes = tokens_per_step("ngrammys")["pocket"], tokens_per_step("medusa")["pocket"]["sizes"]
    assert runs["ngrammys"].keys() == {f"k{k}-w{w}" for k in grid["k"] for w in grid["w"]}
    assert {str(size) for size in sizes} <= runs["medusa"].keys()
    headers = {name: Lessons().trace(run).header for each in runs.values() for name, run in each.items()}
    assert len({header.prompt for header in headers.values()}) == 1
    assert Lessons().title_of(runs["ngrammys"]["k2-w4"]) == "Cost: tree k2 w4"
    for name, header in headers.items():
        size = header.params["size"] if header.method == "medusa" else f"k{header.params['k']}-w{header.params['w']}"
        assert (header.model.name, str(size)) == ("pocket", name)


@pytest.mark.parametrize("asked", ["", "nothing", "../open", None, 3, ["open"], {"id": "open"}, "x" * 10_000])
def test_what_is_no_group_is_refused(costs: RunCosts, asked: object) -> None:
    with pytest.raises(TraceError, match="no such group"):
        costs.of(asked)
    call = next(each for each in functions(AppState(), costs) if each.__name__ == "cost_runs")
    assert call(asked)["fault"].startswith("There is no such group")
