"""`python -m decoding evaluate`: what scripts type and read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.store.folder import read_folder
from cli.evaluate import _settings
from tests.cli.conftest import Command, command

__all__ = ["command"]

TOY = ("--model", "toy", "--max-new-tokens", "8", "--methods", "draft_model")


def test_a_folder_of_texts_is_evaluated_and_a_second_call_goes_on(command: Command, tmp_path: Path) -> None:
    """The report of a finished folder is the same as that of the call that finished it."""
    for name in ("b", "a"):
        (tmp_path / f"{name}.txt").write_text("The sea is calm.\n")
    (tmp_path / "c.md").write_text("no question")
    flags = ("evaluate", *TOY, "--tasks", str(tmp_path), "--out", str(tmp_path / "runs"))
    flags += ("--setting", "short:draft_model.gamma=2,draft_model.threshold=0.5", "--seed", "3", "--json")
    first = command(*flags)
    assert (first.code, first.err) == (0, "")
    summary = first.json
    assert (summary["questions"], summary["runs"], summary["failed"]) == (2, 6, 0)
    assert [(row["method"], row["setting"]) for row in summary["rows"]] == [
        ("autoregressive", "default"),
        ("draft_model", "default"),
        ("draft_model", "short"),
    ]
    assert all(row["same_texts"] == 1.0 for row in summary["rows"])
    assert summary["rows"][0]["mean_acceptance_length"] == summary["rows"][0]["speedup_vs_autoregressive"] == 1.0
    folder = read_folder(tmp_path / "runs")
    rows = folder.runs.to_pylist()
    assert [row["question"] for row in rows] == ["a"] * 3 + ["b"] * 3
    assert (
        json.loads(rows[2]["params"]) == {"gamma": 2, "threshold": 0.5} and json.loads(rows[2]["sampling"])["seed"] == 3
    )
    assert command(*flags).json == summary
    changed = command(*flags, "--temperature", "1")
    assert changed.code == 2 and "begun with other sampling" in changed.err and changed.err.count("\n") == 1


def test_what_failed_is_told_and_only_a_whole_failure_is_one(command: Command, tmp_path: Path) -> None:
    """A prompt that fills the context fails in each of its runs; the table names the reason once."""
    (tmp_path / "long.txt").write_text("The sea is calm. " * 2000)
    flags = ("evaluate", *TOY, "--tasks", str(tmp_path))
    lost = command(*flags, "--out", str(tmp_path / "lost"))
    assert (lost.code, lost.err) == (1, "") and lost.out.count("2 failed: ") == 1 and "tokens" in lost.out
    (tmp_path / "short.txt").write_text("The sea is calm.")
    half = command(*flags, "--out", str(tmp_path / "half"), "--json")
    assert half.code == 0 and [each["runs"] for each in half.json["errors"]] == [half.json["failed"]] == [2]


@pytest.mark.slow
def test_tuned_settings_are_named_for_it(command: Command, tmp_path: Path) -> None:
    """They were called "default" beside runs with the defaults; those that --param sets are not tuned."""
    flags = ("--methods", "lookahead,jacobi,kangaroo", "--tuned", "--param", "jacobi.n=4", "--limit", "1")
    more = (
        "--model",
        "pocket",
        "--device",
        "cpu",
        "--setting",
        "wide:lookahead.W=9",
        "--max-new-tokens",
        "4",
        "--out",
        str(tmp_path / "out"),
        "--json",
    )
    rows = command("evaluate", *flags, *more).json["rows"]
    named = [("autoregressive", "default"), ("lookahead", "tuned"), ("jacobi", "default"), ("kangaroo", "default")]
    assert [(row["method"], row["setting"]) for row in rows] == [*named, ("lookahead", "wide")]
    made = read_folder(tmp_path / "out").runs.to_pylist()
    params = {(row["method"], row["setting"]): json.loads(row["params"]) for row in made}
    assert params["lookahead", "wide"] == params["lookahead", "tuned"] | {"W": 9}


def test_the_table_of_a_terminal_has_a_line_for_every_setting(command: Command, tmp_path: Path) -> None:
    done = command("evaluate", *TOY, "--limit", "1", "--record", "light", "--traces", "--out", str(tmp_path / "runs"))
    lines = done.out.splitlines()
    assert done.code == 0 and lines[0].startswith("1 questions, 2 runs")
    assert [line.split()[0] for line in lines[1:]] == ["method", "autoregressive", "draft_model", "saved"]
    assert len([*(tmp_path / "runs" / "traces").glob("00000-1-*.jsonl.gz")]) == 2


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--workers", "2"], "are for --ray"),
        (["--ray", "--num-gpus", "many"], "--num-gpus must be a number"),
        (["--ray", "--workers", "0"], "--workers must be from 1"),
        (["--tasks", "/no/such/file"], "cannot read"),
        (["--tasks", "decoding/methods"], "no file that ends in .txt"),
        (["--tasks", __file__], "line 1"),
        (["--setting", "short"], "--setting must look like"),
        (["--setting", "short:"], "--setting must look like"),
        (["--setting", "a:draft_model.gamma=2", "--setting", "a:draft_model.gamma=3"], "names 'a' twice"),
        (["--setting", "a:draft_model.gamma=2,medusa.heads=3"], "--setting must look like"),
        (["--setting", "a:draft_model.beta=2"], "unknown parameter"),
        (["--param", "gamma=2"], "METHOD.NAME=VALUE"),
        (["--param", "medusa.heads=2"], "not among the methods evaluated"),
        (["--temperature", "hot"], "temperature must be a number"),
        (["--record", "off"], "record must be one of"),
        (["--limit", "0"], "--limit must be from 1"),
        (["--out", __file__], "cannot make the folder"),
    ],
)
def test_a_mistake_is_one_line(command: Command, tmp_path: Path, flags: list[str], sentence: str) -> None:
    done = command("evaluate", *TOY, "--out", str(tmp_path / "runs"), *flags)
    assert done.code == 2 and sentence in done.err and done.err.count("\n") == 1 and not done.out
    assert not (tmp_path / "runs" / "parts").exists()


def test_a_settings_value_may_hold_commas() -> None:
    assert _settings(["tree:medusa.sizes=3,2,2,medusa.heads=2", "plain:jacobi"]) == {
        "tree": ("medusa", {"sizes": "3,2,2", "heads": "2"}),
        "plain": ("jacobi", {}),
    }
