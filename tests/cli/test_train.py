"""`train family` and `quality`, on the plan that takes seconds: everything is real but the size.

Only `--all` trains a family; the parts of a training are tested in `tests/lab`.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import transformers
from filelock import FileLock

from analysis.prompts import tasks
from cli.main import main
from lab.pocket.language.kinds import KINDS
from lab.pocket.plans import SMOKE
from lab.training.checkpoint import read_log

from .conftest import Command


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a whole family by the command: once for all processes that test it."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    folder = shared / "family"
    with FileLock(shared / "family.lock"):
        if not (shared / "family.whole").exists():
            plan = ["--plan", "smoke", "--seed", "3", "--device", "cpu"]
            assert main(["train", "family", "--out", str(folder), *plan]) == 0
            (shared / "family.whole").touch()
    return folder


@pytest.mark.slow
def test_the_smoke_plan_makes_a_whole_family_that_learns(home: Path) -> None:
    """The full plan takes an hour and more: this is where its every part is run."""
    log = read_log(home / "training" / "target" / "log.jsonl")
    losses = [entry["loss"] for entry in log]
    assert len(losses) == SMOKE.target.steps
    assert sum(losses[-5:]) < 0.75 * sum(losses[:5])
    for role in ("target", "drafter"):
        model = transformers.AutoModelForCausalLM.from_pretrained(home / role)
        assert model.config.model_type == "mistral"
        card = (home / role / "README.md").read_text()
        assert "## Quality" in card and "## Training" in card and all(f"| {kind} |" in card for kind in KINDS)
    card = (home / "target" / "README.md").read_text()
    assert "| lookahead |" in card and "license: apache-2.0" in card and "held-out questions in float32" in card
    assert "Greedy, float32 on cpu" in card
    assert (home / "loss.svg").read_text().count("<polyline") == 2
    assert len((home / "tasks.jsonl").read_text().splitlines()) == len(KINDS)
    assert (home / "datastore.jsonl").stat().st_size > 10_000


@pytest.mark.slow
def test_a_finished_family_is_not_trained_again(command: Command, home: Path, tmp_path: Path) -> None:
    """The second call finds the checkpoints of the first, whole."""
    home = Path(shutil.copytree(home, tmp_path / "family"))
    weights = (home / "target" / "model.safetensors").read_bytes()
    again = command(
        "train", "family", "--out", str(home), "--plan", "smoke", "--seed", "3", "--device", "cpu", "--json"
    )
    assert again.code == 0 and again.json["out"] == str(home)
    assert again.json["target"]["all"]["right"] == 0 < again.json["drafter"]["all"]["turns"]
    assert [row["method"] for row in again.json["bench"]["rows"]][:2] == ["autoregressive", "jacobi"]
    assert (home / "target" / "model.safetensors").read_bytes() == weights
    other = command("train", "family", "--out", str(home), "--plan", "smoke", "--seed", "4", "--device", "cpu")
    assert other.code == 2 and "is of another seed" in other.err


@pytest.mark.slow
@pytest.mark.parametrize("text", ["[1]\n", '{"step": 1}\n', '{"step": "one"}\n', "\udcff"])
def test_a_damaged_log_ends_in_one_line(command: Command, home: Path, tmp_path: Path, text: str) -> None:
    """What the cards tell of a training is read from it, after the training of an hour and more."""
    shutil.copytree(home, tmp_path / "family")
    log = tmp_path / "family" / "training" / "polish" / "log.jsonl"
    log.write_text(text, encoding="utf-8", errors="surrogateescape")
    again = ["--out", str(tmp_path / "family"), "--plan", "smoke", "--seed", "3", "--device", "cpu"]
    done = command("train", "family", *again)
    assert done.code == 2 and done.err.count("\n") == 1
    assert "polish/log.jsonl is damaged: delete checkpoint.safetensors beside it" in done.err


@pytest.mark.slow
def test_quality_judges_a_model_of_the_family(command: Command, home: Path) -> None:
    """Half a second of training answers nothing rightly, and the report says so."""
    flags = ["--model", str(home / "target"), "--tasks", str(home / "tasks.jsonl"), "--device", "cpu"]
    report = command("quality", *flags, "--json").json["kinds"]
    assert set(report) == {*KINDS, "all"}
    assert report["all"]["right"] == 0 and report["all"]["turns"] >= len(KINDS)
    shown = command("quality", *flags, "--show-wrong")
    assert shown.code == 0 and "0 of" in shown.out and "reference:" in shown.out


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["train", "family"], "--out"),
        (["train", "cathedral", "--out", "x"], "invalid choice"),
        (["train", "family", "--out", "x", "--plan", "grand"], "full, smoke"),
        (["train", "family", "--out", "x", "--seed", "-1"], "--seed must be from 0"),
        (["train", "family", "--out", __file__], "must name a folder"),
        (["quality", "--tasks", "/no/such/file"], "cannot read"),
        (["train", "family", "--out", "x", "--plan", "smoke", "--device", "abacus"], "no device 'abacus'"),
        (["quality", "--limit", "0"], "--limit must be from 1"),
    ],
)
def test_nonsense_ends_in_one_line(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command(*argv)
    assert done.code == 2 and done.err.count("\n") == 1
    assert reason in done.err


@pytest.mark.slow
def test_tasks_of_other_languages_cannot_be_judged(command: Command, home: Path, tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"question_id": 7, "category": "poetry", "turns": ["Sing."]}))
    done = command("quality", "--model", str(home / "target"), "--tasks", str(tmp_path / "tasks.jsonl"))
    assert done.code == 2 and "question 7" in done.err


@pytest.mark.parametrize("argv", [["quality"], ["bench", "--model", "pocket"]])
def test_a_copy_without_the_suite_says_so(command: Command, monkeypatch: pytest.MonkeyPatch, argv: list[str]) -> None:
    monkeypatch.setitem(tasks.SUITES, "pocket", Path("/no/such/suite"))
    done = command(*argv)
    assert done.code == 2 and "name a file with --tasks" in done.err
