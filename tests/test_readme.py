"""The README's promises, run: every shell command and every Python example."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from unittest.mock import patch

import pytest

from decoding import METHODS
from viz.methods import SCREENS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]
MAKE_TARGETS = sorted({*re.findall(r"`make ([a-z-]+)", README), *(c.split()[1] for c in COMMANDS if c[:4] == "make")})


@pytest.mark.slow
def test_the_commands_run_one_after_the_other(tmp_path: Path) -> None:
    """A newcomer types what stands there; a renamed flag must not survive in the text."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    starts = {"python": [], "torchrun": ["-m", "torch.distributed.run"]}
    typed = [shlex.split(command) for command in COMMANDS if not command.startswith("make ")]
    assert len(typed) >= 6 and {program for program, *_ in typed} == starts.keys()
    for program, *command in typed:
        assert "-m decoding" in " ".join(command)
        words = [sys.executable, *starts[program], *command]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout.strip(), command


@pytest.mark.parametrize("target", MAKE_TARGETS)
def test_make_knows_its_targets(target: str) -> None:
    """`make` itself plans the target without running it."""
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def planned(target: str) -> list[str]:
    """What make would run last for a target, with this interpreter."""
    plan = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    command = next(line for line in reversed(plan.splitlines()) if line.startswith(".venv/bin/python -m "))
    return [sys.executable, *shlex.split(command)[1:]]


@pytest.mark.slow  # `.ci/run` runs it with what a Space has
def test_make_demo_shows_every_method() -> None:
    done = subprocess.run(planned("demo"), cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert all(method in done.stdout for method in METHODS)


@pytest.mark.slow  # tests/app/test_start.py starts the page too
def test_make_run_serves_the_page() -> None:
    """The first thing that anybody sees, on a port of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
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


@pytest.mark.parametrize("example", blocks("python"), ids=lambda text: text.splitlines()[-1][:40])
def test_the_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example stands alone, may write files and add methods."""
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    with patch.dict(METHODS), patch.dict(SCREENS):
        exec(compile(example, "README.md", "exec", dont_inherit=True), {"__name__": "readme"})


def test_the_readme_counts_the_methods() -> None:
    counted = {12: "twelve", 13: "thirteen", 14: "fourteen", 15: "fifteen"}[len(METHODS)]
    assert f"It runs {counted} decoding methods" in README


@pytest.mark.parametrize("method", METHODS)
def test_every_method_stands_in_the_readme(method: str) -> None:
    """A method that nobody reads about might as well not exist."""
    assert f"| `{method}` |" in README
