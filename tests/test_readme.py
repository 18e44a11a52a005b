"""The promises of README, CONTRIBUTING and docs/, run: every shell command and every Python example.

A fence says what is promised of it: `sh` runs as it stands, `console` is right but takes hours, another machine or an
account, so its flags are checked; `text` is what a program prints.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from analysis import measured_here
from cli import main as command_line
from cli.main import build_parser
from decoding import METHODS, smollm2
from tests import ROOT
from tools import pack_assets
from tools.page import free_port
from viz.lessons import __main__ as lessons_command
from viz.methods import SCREENS

GUIDES = [
    *("README.md", "CONTRIBUTING.md", "benchmarks/README.md"),
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "api.md"),
]
TEXTS = {guide: (ROOT / guide).read_text(encoding="utf-8") for guide in GUIDES}
README = TEXTS["README.md"]
OF_ITS_OWN = "docs/slow_drafter.md"  # tests/test_slow_drafter.py types it
LONGEST = 130  # lines of README behind the front matter, which a maintainer of another project reads in three minutes


def blocks(guide: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXTS[guide], flags=re.MULTILINE | re.DOTALL)


def commands(guide: str, language: str) -> list[list[str]]:
    lines = (line for block in blocks(guide, language) for line in block.replace("\\\n", " ").splitlines())
    return [shlex.split(line, comments=True) for line in lines]


def inline(text: str) -> Iterator[list[str]]:
    """Yield the calls of our command line within sentences, which may leave out what does not matter there."""
    for call in re.findall(r"`(?:\.venv/bin/)?python\s+-m\s+decoding\s([^`]+)`", text):
        yield shlex.split(call)


def test_readme_is_short() -> None:
    """622 lines told everything, and nobody read them."""
    assert len(README.split("---\n", 2)[2].splitlines()) <= LONGEST


PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "decoding": command_line.main,
    "tools.pack_assets": pack_assets.main,
    "viz.lessons": lessons_command.main,
}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("guide", [each for each in GUIDES if blocks(each, "sh") and each != OF_ITS_OWN])
def test_the_commands_run_one_after_the_other(
    guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A newcomer types what is written there; a renamed flag must not survive in the text.

    All but what starts processes of its own runs in this one: each would otherwise import torch anew. The default
    model is that of a machine without SmolLM2, which decodes in a tenth of the time.
    """
    monkeypatch.setattr(smollm2, "here", lambda: None)
    monkeypatch.setattr(measured_here, "user_cache", lambda: tmp_path / "cache")  # the page would show what is saved
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    for program, *command in commands(guide, "sh"):
        if program == "make" or command[2:] == ["demo"]:  # test_make_knows_its_targets, tests/cli/test_commands.py
            continue
        capfd.readouterr()
        if program == "torchrun":
            environment = os.environ | {"PYTHONPATH": str(ROOT)}
            words = [sys.executable, "-m", "torch.distributed.run", *command]
            code = subprocess.run(words, env=environment, timeout=300).returncode
        else:
            assert program in (".venv/bin/python", "python") and command[0] == "-m", command
            code = PROGRAMS[command[1]](command[2:])
        shown = capfd.readouterr()
        assert code == 0, f"{command}\n{shown.err}"
        assert shown.out.strip(), command
    assert (tmp_path / "cache" / "tuned").is_dir() == (" tune --model" in "".join(blocks(guide, "sh")))


def flags_of(parser: argparse.ArgumentParser, words: list[str]) -> set[str]:
    """Return the flags that the command of these words has, with those of its subcommand."""
    flags = {flag for action in parser._actions for flag in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            name = next(word for word in words if not word.startswith("-"))
            assert name in action.choices, f"there is no command {name}"
            return flags | flags_of(action.choices[name], words[words.index(name) + 1 :] or ["--help"])
    return flags


@pytest.mark.parametrize("guide", GUIDES)
def test_commands_that_are_only_shown_have_these_flags(guide: str) -> None:
    """They are not run here, but are typed by somebody."""
    ours = [words[3:] for words in commands(guide, "console") if words[1:3] == ["-m", "decoding"]]
    for words in (*ours, *inline(TEXTS[guide])):
        if words[0] not in ("COMMAND", "..."):
            check_flags(words)


def check_flags(words: list[str]) -> None:
    unknown = {word for word in words if re.fullmatch(r"--[a-z-]+", word)} - flags_of(build_parser(), words)
    assert not unknown, f"{' '.join(words)}: no {unknown}"


MAKE_TARGETS = sorted(
    {target for text in TEXTS.values() for target in re.findall(r"`make ([a-z-]+)", text)}
    | {words[1] for guide in GUIDES for words in commands(guide, "sh") if words[0] == "make"}
)


@pytest.mark.parametrize("target", MAKE_TARGETS)
def test_make_knows_its_targets(target: str) -> None:
    """`make` itself plans the target without running it."""
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def planned(target: str) -> list[str]:
    """Return what make would run last for a target, with this interpreter."""
    plan = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    command = next(line for line in reversed(plan.splitlines()) if line.startswith(".venv/bin/python -m "))
    return [sys.executable, *shlex.split(command)[1:]]


@pytest.mark.slow  # tests/app/test_start.py starts the page too
def test_make_run_serves_the_page() -> None:
    """The first thing that anybody sees, on a port of its own."""
    port = free_port()
    server = subprocess.Popen([*planned("run"), "--port", str(port)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        assert any(str(port) in line for line in lines), "the server said nothing and ended"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as page:
            assert page.status == 200 and "Specscope" in page.read().decode()
    finally:
        server.terminate()
        server.communicate(timeout=60)


def test_make_run_goes_on_without_smollm2(tmp_path: Path) -> None:
    """A machine that cannot have the package gets one sentence, and is not made to wait for it again."""
    (tmp_path / "ready").touch()
    command = ["make", "--no-print-directory", "run", f"VENV={tmp_path}", "PIP=false", "PY=echo"]
    plain = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    first, second = (
        subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True, check=True) for _ in range(2)
    )
    assert "pocket stands in for it; to try again: make real" in first.stdout
    assert first.stdout.endswith("-m app\n") and second.stdout == "-m app\n"
    assert not (tmp_path / "real-ready").exists()


EXAMPLES = [
    pytest.param(example, id=f"{guide}: {example.splitlines()[-1][:40]}")
    for guide in GUIDES
    for example in blocks(guide, "python")
]


@pytest.mark.slow  # most load a model
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example stands alone, may write files and add methods."""
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    with patch.dict(METHODS), patch.dict(SCREENS):
        exec(compile(example, "example", "exec", dont_inherit=True), {"__name__": "readme"})


def test_the_readme_counts_the_methods() -> None:
    counted = {12: "twelve", 13: "thirteen", 14: "fourteen", 15: "fifteen"}[len(METHODS)]
    assert f"It runs {counted} decoding methods" in README


@pytest.mark.parametrize("method", METHODS)
def test_every_method_stands_in_the_readme(method: str) -> None:
    """A method that nobody reads about might as well not exist."""
    assert f"| `{method}` |" in README
