"""`import` from the command line: a folder, a report, and one line where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.export import vllm
from analysis.store.folder import read_folder
from cli.main import main
from decoding import load
from decoding.trace.file import read_trace, write_trace

from .samples import FOLDER

VLLM = str(FOLDER / "vllm.jsonl")


def test_it_makes_a_folder_and_says_what_is_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["import", VLLM, str(FOLDER / "acceptance.csv"), "--out", str(out), "--json"]) == 0
    report, folder = json.loads(capsys.readouterr().out), read_folder(out)
    assert report["formats"] == ["vllm", "speculators"] and report["restored"] is None
    assert (report["runs"], report["steps"]) == (len(folder.runs), len(folder.steps)) and report["nodes"] == 0
    assert report["missing"] == folder.summary["missing"] and folder.summary["name"] == "vllm.jsonl"


def test_people_read_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", VLLM, "--out", str(tmp_path / "out"), "--name", "my server"]) == 0
    shown = capsys.readouterr().out
    assert "runs 7, steps 87, nodes 0, from answers like vLLM's" in shown
    assert "without the guesses one by one: no engine records its rejected guesses" in shown
    assert read_folder(tmp_path / "out").summary["name"] == "my server"


def test_guesses_are_restored_and_the_outcome_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain = ["--method", "eagle3", "--param", "form=chain", "--param", "gamma=4", "--param", "threshold=0"]
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(Path(VLLM).read_bytes().splitlines(keepends=True)[:2]))
    asked = ["import", str(few), "--out", str(tmp_path / "out"), "--restore", *chain]
    assert main(asked) == 0  # the records name the model pocket
    assert "accept as many as recorded." in capsys.readouterr().out
    folder = read_folder(tmp_path / "out")
    assert len(folder.nodes) > 50 and all(folder.runs["reconstructed"].to_pylist())
    assert folder.summary["restored"]["disagreements"] == 0


def test_our_own_traces_stay_beside_the_tables(tmp_path: Path) -> None:
    """The page plays them."""
    trace = load("toy").generate("the cat", "jacobi", {}, {"temperature": 0}, 12).trace
    write_trace(trace, tmp_path / "run.jsonl")
    assert main(["import", VLLM, str(tmp_path / "run.jsonl"), "--out", str(tmp_path / "out")]) == 0
    folder = read_folder(tmp_path / "out")
    (place,) = (name for name in folder.runs["trace"].to_pylist() if name)
    assert folder.runs["trace"].to_pylist()[-1] == place
    assert read_trace(tmp_path / "out" / place).steps == trace.steps
    exported = tmp_path / "export.json"
    exported.write_text(json.dumps(vllm(trace)))
    assert main(["import", str(exported), "--out", str(tmp_path / "again"), "--restore"]) == 0  # method and model too
    assert read_folder(tmp_path / "again").runs["method"].to_pylist() == ["jacobi"]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ([], "required: FILE"),
        ([VLLM], "required: --out"),
        ([VLLM, "--out", "{full}"], "--out must name a new or empty folder"),
        ([VLLM, "--out", "{file}"], "--out must name a new or empty folder"),
        ([VLLM, "--out", "{new}", "--format", "xml"], "there is no format 'xml': choose one of"),
        ([VLLM, "--out", "{new}", "--format", "aiperf"], "line 1 is no record of AIPerf's export"),
        ([VLLM, "--out", "{new}", "--method", "medusa"], "give --restore as well"),
        ([VLLM, "--out", "{new}", "--restore"], "their method 'speculative': say with --method"),
        ([VLLM, "--out", "{new}", "--restore", "--method", "telepathy"], "unknown method 'telepathy'"),
        ([str(FOLDER / "spec_bench.jsonl"), "--out", "{new}", "--restore"], "name it with --model"),
        (["/no/such/file", "--out", "{new}"], "cannot read '/no/such/file'"),
        ([__file__, "--out", "{new}"], "test_command.py"),
    ],
)
def test_mistakes_are_one_line(
    asked: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    places = {name: str(tmp_path / name) for name in ("full", "new")} | {"file": str(tmp_path / "full" / "file")}
    assert main(["import", *(word.format(**places) for word in asked)]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("specscope: ") and shown.count("\n") == 1
    assert any(part in shown for part in sentence.split("|")), shown
    assert not (tmp_path / "new").exists()
