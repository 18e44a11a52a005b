"""`datastore build`: from files to a store that opens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from cli import datastore
from cli.arguments import Parser
from decoding.errors import ParamError
from decoding.parts.datastore import fingerprint, load_store
from decoding.toy import toy


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a folder with a text and a conversation."""
    (tmp_path / "a.txt").write_text("Every evening the keeper lights the lamps.\n\nEvery evening the keeper reads.\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"turns": ["When is high tide?", "At six."]}))
    return tmp_path


def run(*argv: str) -> int:
    """Return the command on the toy."""
    parser, threads = Parser(), torch.get_num_threads()
    datastore.add_flags(parser)
    try:
        return datastore.main(parser.parse_args(["build", *argv, "--model", "toy"]))
    finally:
        torch.set_num_threads(threads)


def test_build_keeps_its_contract(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts read this line, and the file opens with the model that it was built for."""
    out = home / "store.safetensors"
    assert run(str(home / "a.txt"), str(home / "b.jsonl"), "--out", str(out), "--border", "", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["out"] == str(out) and report["model"] == "toy"
    assert report["documents"] == 3 and report["tokens"] > 20 and report["size"] == out.stat().st_size
    codec = toy().codec
    store = load_store(out, fingerprint(codec))
    matches = store.continuations(codec.encode("Every evening the keeper"), 16, 2, 4, 10)
    assert matches.hits == 2 and codec.decode(matches.ways[:, 0].tolist()).startswith((" lights", " reads"))


def test_a_person_reads_one_summary(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(home / "a.txt"), "--out", str(home / "store")) == 0
    assert "documents: 1, tokens: " in (shown := capsys.readouterr().out) and "--datastore" in shown


def test_a_file_is_replaced_only_where_that_is_asked_for(home: Path) -> None:
    """Another store, or the corpus itself, must not vanish by a slip."""
    out = home / "store"
    out.write_text("precious")
    with pytest.raises(ParamError, match="exists: name another file, or replace it with --force"):
        run(str(home / "a.txt"), "--out", str(out))
    with pytest.raises(ParamError, match="to be read and replaced at once"):
        run(str(home / "a.txt"), "--out", str(home / "a.txt"), "--force")
    assert out.read_text() == "precious"
    assert run(str(home / "a.txt"), "--out", str(out), "--force") == 0
    load_store(out, fingerprint(toy().codec))


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--out", "store"], "arguments are required: FILE"),
        (["a.txt"], "arguments are required: --out"),
        (["a.txt", "--out", "/no/such/folder/store"], "folder that exists"),
        (["missing.txt", "--out", "store"], "there is no file 'missing.txt'"),
        (["\udcff", "--out", "store"], "there is no file"),
        (["a\0.txt", "--out", "store"], "there is no file"),
        ([".", "--out", "store"], "there is no file"),
    ],
    ids=range(7),
)
def test_nonsense_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], reason: str) -> None:
    monkeypatch.chdir(home)
    with pytest.raises(ParamError, match=reason):
        run(*argv)
    assert not (home / "store").exists()
