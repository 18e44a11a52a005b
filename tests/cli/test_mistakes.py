"""Whatever is typed: one line on stderr, exit code 2, and never a traceback."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cli import run as run_command
from tests import ROOT

from .conftest import Command

NONSENSE = [
    (["fly"], "invalid choice"),
    (["run", "--fly"], "unrecognized"),
    (["run", "--prom", "abbreviated"], "unrecognized"),
    (["run", "--prompt"], "expected one argument"),
    (["run", "--prompt", "a", "--prompt-ids", "1"], "not allowed with"),
    (["run", "--method", "telepathy"], "unknown method 'telepathy'"),
    (["run", "--method", "lookahead", "--param", "W=1e9999"], "W must be a whole number"),
    (["run", "--method", "lookahead", "--param", "W=" + "9" * 5000], "W must be a whole number"),
    (["run", "--method", "lookahead", "--param", "W"], "NAME=VALUE"),
    (["run", "--method", "lookahead", "--param", "=5"], "NAME=VALUE"),
    (["run", "--method", "lookahead", "--param", "X=5"], "unknown parameter 'X'"),
    (["run", "--method", "lookahead", "--param", "W=5", "--param", "W=6"], "twice"),
    (["run", "--method", "draft_model", "--param", "threshold=nan"], "finite"),
    (["run", "--temperature", "nan"], "temperature must be a finite number"),
    (["run", "--temperature", "hot"], "temperature must be a number"),
    (["run", "--top-p", "1.5"], "top_p must be between"),
    (["run", "--seed", "-1"], "seed must be between"),
    (["run", "--seed", "1e3"], "seed must be a whole number"),
    (["run", "--max-new-tokens", "0"], "--max-new-tokens must be from 1"),
    (["run", "--max-new-tokens", "many"], "--max-new-tokens must be a whole number"),
    (["run", "--max-new-tokens", "5000"], "exceed the model's context"),
    (["run", "--prompt", ""], "at least one letter"),
    (["run", "--prompt", "word " * 9000], "shorten it"),
    (["run", "--prompt-ids", "1,2,x"], "--prompt-ids must be whole numbers"),
    (["run", "--prompt-ids", ""], "--prompt-ids must be whole numbers"),
    (["run", "--prompt-ids", "1,-2"], "token id"),
    (["run", "--prompt-ids", "1,999999"], "token id"),
    (["run", "--prompt-ids", "1", "--chat"], "--chat needs a text"),
    (["run", "--stop", ""], "stop strings"),
    (["run", "--method", "jacobi", "--reference", __file__], "jacobi copies from no reference"),
    (["run", "--record", "everything"], "record must be one of"),
    (["run", "--prefill-chunk", "0"], "--prefill-chunk must be from 1"),
    (["run", "--prefill-chunk", "4097"], "--prefill-chunk must be from 1 to 4096"),
    (["run", "--threads", "0"], "--threads must be from 1"),
    (["run", "--device", "abacus"], "leave device and dtype out"),
    (["run", "--model", "", "--prompt", "a"], "--model: name a model"),
    (["landscape", "--model", " ", "--prompt", "a"], "--model: name a model"),
    (["run", "--model", "/no/such/folder", "--prompt", "a"], "not a folder"),
    (["run", "--model", "\udcff", "--prompt", "a"], "not a folder"),
    (["run", "--model", "/no/such/folder"], "give a prompt"),
    (["run", "--trace", "/no/such/folder/run.jsonl"], "folder that exists"),
    (["run", "--trace", "."], "is a folder: add a name"),
    (["rescore"], "required"),
    (["rescore", "/no/such/trace"], "cannot be read"),
    (["rescore", "\udcff"], "cannot be read"),
    (["bench", "--methods", "telepathy"], "unknown method"),
    (["bench", "--param", "W=5"], "METHOD.NAME=VALUE"),
    (["bench", "--param", "telepathy.W=5"], "unknown method"),
    (["bench", "--methods", "jacobi", "--param", "lookahead.W=5"], "not among the methods"),
    (["bench", "--limit", "0"], "--limit must be from 1"),
    (["bench", "--tasks", "/no/such/file"], "cannot read"),
    (["bench", "--peers", "vllm"], "unknown peer"),
    (["bench", "--peers", "transformers"], "cannot run the toy"),
    (["bench", "--model", "/no/such/folder"], "--tasks english"),
    (["bench", "--out", "/no/such/folder/out.json"], "folder that exists"),
    (["bench", "--max-new-tokens", "4096"], "no prompt leaves room"),
]


@pytest.mark.parametrize(
    ("argv", "reason"), NONSENSE, ids=lambda value: " ".join(value)[:50].encode("ascii", "replace")
)
def test_nonsense_ends_in_one_line(command: Command, argv: list[str], reason: str) -> None:
    """Somebody who mistypes must read what to change, not where the program broke."""
    done = command(*argv)
    assert done.code == 2, done
    assert done.err.startswith("specscope: ") and done.err.count("\n") == 1
    assert reason in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"a" * (2**20 + 1), "larger than 1 MB"),
        (b"\xff\xfe", "not a text"),
        (b"a\0b", "not a text"),
    ],
    ids=["empty", "blank", "large", "latin", "binary"],
)
def test_bad_prompt_files(command: Command, tmp_path: Path, content: bytes, reason: str) -> None:
    """A file of the wrong kind must not become a prompt of garbage."""
    path = tmp_path / "prompt.txt"
    path.write_bytes(content)
    for flag in ("--prompt-file", "--reference"):
        done = command("run", flag, str(path))
        assert done.code == 2 and reason in done.err and done.err.count("\n") == 1


def test_a_huge_prompt_file_is_not_read(command: Command, tmp_path: Path) -> None:
    """100 MB by mistake must cost no more than the limit."""
    path = tmp_path / "prompt.txt"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    done = command("run", "--prompt-file", str(path))
    assert done.code == 2 and "larger than 1 MB" in done.err


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_files_without_permission(command: Command, tmp_path: Path) -> None:
    """Another person's file is no reason for a traceback."""
    path = tmp_path / "prompt.txt"
    path.write_text("a")
    path.chmod(0)
    for argv in (["run", "--prompt-file", str(path)], ["run", "--trace", str(path), "--force"]):
        done = command(*argv)
        assert done.code == 2 and "Permission denied" in done.err and done.err.count("\n") == 1
    path.chmod(stat.S_IRUSR)


def test_files_that_are_missing_or_folders(command: Command, tmp_path: Path) -> None:
    """The two commonest mistakes with files."""
    for path in (tmp_path, tmp_path / "missing"):
        done = command("run", "--prompt-file", str(path))
        assert done.code == 2 and "cannot read the prompt file" in done.err


def test_bytes_that_are_no_text_become_question_marks(command: Command) -> None:
    """A shell passes broken bytes on as lone surrogates, which neither a tokenizer nor a file takes."""
    done = command("run", "--prompt", "a\udcffb", "--stop", "\udcff", "--max-new-tokens", "3")
    assert done.code == 0 and done.err == ""


def test_control_characters_in_an_error_are_shown(command: Command) -> None:
    """An error that quotes hostile input must not steer the terminal."""
    for argv in (
        ["run", "--method", "\x1b[2J\n\u202e"],
        ["run", "\x1b[2J\n\u202e"],
        ["bench", "--tasks", "\x1b\u202e"],
    ):
        done = command(*argv)
        assert done.code == 2 and done.err.count("\n") == 1
        assert "\x1b" not in done.err and "\u202e" not in done.err


def test_interruption_is_quiet(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is not an error."""

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "load_engine", interrupt)
    done = command("run")
    assert (done.code, done.out, done.err) == (130, "", "")


def test_other_errors_are_not_hidden(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug of ours dressed up as a user's mistake would never be found."""

    def fail(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(run_command, "load_engine", fail)
    with pytest.raises(ZeroDivisionError):
        command("run")


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error() -> None:
    """`... | head -1` must not end in a traceback of a broken pipe."""
    argv = [sys.executable, "-m", "decoding", "run", "--model", "toy", "--max-new-tokens", "20"]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
