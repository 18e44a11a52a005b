"""`rules`: other stop rules replayed on a record, for people and for scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.store.folder import write_folder
from tests.stop_rules.drafted import PureDrafter, recorded

from .conftest import Command


def folder(path: Path, method: str = "draft_model") -> str:
    """Return a folder of three simulated runs."""
    runs = [PureDrafter.random(seed, 60, 0.7).steps(6, 0.0) for seed in range(3)]
    tables = [getattr(recorded(runs, method, {"gamma": 6}), name).columns.table for name in ("runs", "steps", "nodes")]
    return str(write_folder(path, *tables, {"source": "specscope", "name": "a \x1b[31mtest"}))


def test_a_report_for_people(command: Command, tmp_path: Path) -> None:
    out = command("rules", folder(tmp_path / "a"), "--costs", "cpu-2-cores").out
    assert "Passes cost as measured on AMD EPYC, smollm2, after 128 tokens, for up to 64" in out
    assert "gamma=6, threshold=0 (recorded)" in out and "and 13 other rules" in out
    assert "cannot be said: gamma above 6" in out
    assert all(len(line) <= 80 for line in out.splitlines()) and "\x1b" not in out
    every = command("rules", folder(tmp_path / "b"), "--all").out
    assert "adaptive" not in every and "gamma=3, threshold=0.6" in every
    assert "No speed-up: no costs were given" in every


def test_the_contract_of_its_json(command: Command, tmp_path: Path) -> None:
    report = command("rules", folder(tmp_path / "a"), "--costs", "nvidia-h200:7B", "--draft-ms", "0.4", "--json").json
    assert report["costs"] == {"device": "NVIDIA H200", "model": "7B", "context": 1024, "rows": 128}
    [part] = report["selections"]
    assert {"method", "setting", "params", "steps", "best", "sentence", "draft_ms", "unsaid"} <= part.keys()
    assert part["draft_ms"] == 0.4 and part["rows"][0]["recorded"] and part["rows"][0]["certainty"] == "exact"
    keys = {"rule", "flags", "certainty", "because", "steps", "fewest_steps", "most_steps", "tokens_per_step"}
    keys |= {"verified_per_step", "drafted_per_step", "speedup", "least_speedup"}
    assert all(keys <= row.keys() for row in part["rows"])
    assert part["rows"][-1]["rule"] == "adaptive verification" and part["rows"][-1]["flags"] is None


def test_traces_are_a_record_too(command: Command, tmp_path: Path) -> None:
    """The rules of a trace are those of a run folder with that run."""
    paths = [str(tmp_path / f"{seed}.jsonl.gz") for seed in (1, 2)]
    flags = ("--method", "draft_model", "--param", "gamma=5", "--record", "full", "--max-new-tokens", "24", "--json")
    for path in paths:
        assert command("run", *flags, "--prompt", "On Monday", "--trace", path).code == 0
    [part] = command("rules", *paths, "--json").json["selections"]
    one = command("rules", paths[0], "--json").json["selections"][0]
    assert part["rows"][0]["steps"] == 2 * one["rows"][0]["steps"] == part["steps"]


def test_what_it_cannot_replay_is_said_in_its_place(command: Command, tmp_path: Path) -> None:
    out = command("rules", folder(tmp_path / "a", "lookahead")).out
    assert "Not replayed: rules can be replayed only for draft_model, kangaroo, eagle3, suffix" in " ".join(out.split())


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--costs", "toaster"], "there are no costs of"),
        (["--costs", "nvidia-h200"], "name one, as DEVICE:MODEL"),
        (["--costs", "cpu-2-cores", "--draft-ms", "-1"], "--draft-ms must be"),
        (["--draft-ms", "1"], "--draft-ms is for --costs"),
        (["--method", "medusa"], "no run that these flags choose"),
    ],
)
def test_a_mistake_ends_in_one_line(command: Command, tmp_path: Path, flags: list[str], reason: str) -> None:
    done = command("rules", folder(tmp_path / "a"), *flags)
    assert done.code == 2 and done.out == "" and done.err.count("\n") == 1 and reason in done.err


def test_a_record_that_is_none(command: Command, tmp_path: Path) -> None:
    (tmp_path / "text.jsonl").write_text("{}\n")
    for record in (tmp_path / "nothing", tmp_path / "text.jsonl", tmp_path):
        done = command("rules", str(record))
        assert done.code == 2 and done.err.count("\n") == 1
