"""The tutorial, done: its commands one after the other, its notebook cell by cell, and what both promise."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from cli.main import main
from decoding.packed import unpack
from tests import ROOT

PAGE = (ROOT / "docs" / "slow_drafter.md").read_text(encoding="utf-8")
NOTEBOOK = json.loads((ROOT / "docs" / "slow_drafter.ipynb").read_text(encoding="utf-8"))
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]
PYTHON = ".venv/bin/python"  # most machines have no `python`, and none has one with torch
SLOW = ROOT / "assets" / "samples" / "slow-drafter"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder to type the commands in, with what a clone has."""
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    yield tmp_path
    torch.set_num_threads(threads)


def typed(command: str) -> int:
    """Return the exit code of a command as it is written there; ours run in this process."""
    words = shlex.split(command)
    if words[:3] == [PYTHON, "-m", "decoding"]:
        return main(words[3:])
    words[0] = {PYTHON: sys.executable}.get(words[0], words[0])
    return subprocess.run(words, check=False, timeout=60).returncode


@pytest.mark.long
@pytest.mark.slow  # examines whole drafters; tests/doctor finds the same faults
def test_the_commands_lead_from_the_complaint_to_the_cure(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every number of tokens that the page quotes, and every sentence, is what a reader will see."""
    assert len(COMMANDS) >= 9 and {command.split()[0] for command in COMMANDS} == {PYTHON, "cp"}
    printed = ""
    for command in COMMANDS:
        assert typed(command) == (1 if " doctor " in command else 0), command
        printed += capsys.readouterr().out
    plain = re.sub(r"\s+", " ", printed)
    for quoted in (
        "eagle3 default 9 0 1.25",
        "Guess 1 is right in 27% of 258 steps, guess 2 in 0% of the 66 in which all earlier ones were.",
        "the drafter's first in 21% of 324 positions, and among its first 5 in 45%",
        "mended 92% 83% 76% 71% 65%",
        "One fault: with norm_before_residual on, 4.87 tokens per step instead of 1.21: "
        "set norm_before_residual to true in config.json.",
        "Acceptance rose from 1.25 to 4.24, at positions 1 and 2.",
    ):
        assert quoted in plain and quoted in re.sub(r"\s+", " ", PAGE), quoted


@pytest.mark.slow  # its cells call what the commands call
def test_the_notebook_runs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "notebook"}
    cells = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 5
    for cell in cells:
        exec(compile(cell, "slow_drafter.ipynb", "exec", dont_inherit=True), names)
    assert [fault.flag for fault in names["report"].faults] == ["norm_before_residual"]
    assert "Acceptance rose from 1.25 to 4.24" in capsys.readouterr().out


def test_the_drafter_is_pockets_own_but_for_one_line() -> None:
    """Nothing else is wrong with it."""
    good = ROOT / "assets" / "pocket" / "eagle"
    weights = [unpack(folder / "model.safetensors.packed") for folder in (SLOW, good)]
    assert weights[0] == weights[1]
    broken, whole = (json.loads((folder / "config.json").read_text()) for folder in (SLOW, good))
    assert whole == broken | {"norm_before_residual": True} and broken["norm_before_residual"] is False


def test_no_output_is_kept_in_the_notebook() -> None:
    """It would go stale."""
    assert all(not cell.get("outputs") for cell in NOTEBOOK["cells"])
    assert shutil.which("cp"), "the page copies a folder"
