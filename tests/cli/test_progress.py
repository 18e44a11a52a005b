"""The bar: on everything that takes longer than a second, for people only, and never over the text."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.bench.methods import bench
from analysis.prompts.tasks import Task
from cli import progress
from cli.main import main
from decoding import load

from .conftest import Command

RUN = (
    *("run", "--model", "toy", "--prompt", "Every evening the keeper climbs the stairs"),
    *("--prefill-chunk", "2", "--max-new-tokens", "6"),
)


class Terminal(io.StringIO):
    """What a person sees; a bar may take the place of nothing but a bar."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text.startswith("\r\x1b[K"):
            line = self.getvalue().rpartition("\n")[2].rpartition("\r\x1b[K")[2]
            assert not line or re.fullmatch(r"[a-z ]+ \[#*\.*\] +\d+%", line), f"a bar over {line!r}"
        return super().write(text)

    @property
    def bars(self) -> list[tuple[str, int]]:
        return [
            (what, int(share)) for what, share in re.findall(r"\r\x1b\[K([a-z ]+) \[#*\.*\] +(\d+)%", self.getvalue())
        ]


class Alarm:
    """A timer that goes off when a test says so."""

    def __init__(self, seconds: float, wake: Callable[[], None]) -> None:
        self.seconds, self.wake = seconds, wake
        self.started = self.cancelled = False

    def start(self) -> None:
        self.started = True

    def cancel(self) -> None:
        self.cancelled = True


def seen(monkeypatch: pytest.MonkeyPatch, *argv: str) -> Terminal:
    """Make a command with both streams on one terminal, before an impatient person."""
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stderr", screen)
    assert main(argv) == 0
    return screen


def stages(bars: list[tuple[str, int]]) -> list[str]:
    return list(dict.fromkeys(what for what, _ in bars))


def test_progress_is_for_people_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar in a log file is noise, and so is one that flashes up for a moment."""
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress.ProgressBar() as show:
        show("loading", 0.5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress.ProgressBar() as show:
        show("loading", 0.5)
    assert capsys.readouterr().err == "\r\x1b[Kloading [############............]  50%\r\x1b[K"
    monkeypatch.setattr(progress, "_PATIENCE", 9.0)
    with progress.ProgressBar() as show:
        show("loading", 0.5)
    assert capsys.readouterr().err == ""


def test_the_bar_comes_up_without_a_further_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that calls early and then not for a minute would look as if it hung."""
    screen, alarms = Terminal(), list[Alarm]()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "_PATIENCE", 600.0)
    monkeypatch.setattr(threading, "Timer", lambda seconds, wake: alarms.append(Alarm(seconds, wake)) or alarms[-1])
    with progress.ProgressBar() as show:
        show("loading", 0.0)
        show("loading", 0.25)
        [alarm] = alarms
        assert alarm.started and 0.0 < alarm.seconds <= 600.0 and screen.bars == []
        alarm.wake()
        assert screen.bars == [("loading", 25)]
    assert alarm.cancelled
    before = screen.getvalue()
    assert before.endswith("25%\r\x1b[K")
    show("loading", 0.5)
    show._wake()
    assert screen.getvalue() == before, "a bar that was taken away came back"


def test_run_shows_prompt_and_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long prompt, and the check after the text, take as long as the writing; neither may wipe out the text."""
    terminal = seen(monkeypatch, *RUN)
    assert stages(terminal.bars) == ["reading the prompt", "checking the text"]
    assert [share for what, share in terminal.bars if what == "checking the text"][-1] == 100
    assert len([share for what, share in terminal.bars if what == "reading the prompt" and share]) > 1
    assert terminal.getvalue().index("checking the text") > terminal.getvalue().index("Every evening the keeper climbs")


def test_run_json_shows_the_tokens_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no text appears, nothing else tells how far a run of minutes is."""
    terminal = seen(monkeypatch, *RUN, "--json")
    assert stages(terminal.bars) == ["reading the prompt", "writing", "checking the text"]
    assert [share for what, share in terminal.bars if what == "writing"] == [17, 33, 50, 67, 83, 100]
    assert terminal.getvalue().rpartition("\r\x1b[K")[2].startswith("{")


def test_rescore_shows_its_check(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A trace of a long run is checked for as long as it took to read it."""
    path = tmp_path / "run.jsonl"
    command(*RUN, "--trace", str(path))
    bars = seen(monkeypatch, "rescore", str(path)).bars
    assert stages(bars) == ["checking the text"] and bars[-1][1] == 100


def test_bench_moves_within_a_task() -> None:
    """One task of several turns and methods takes minutes: a bar that moves by the task would stand still."""
    got = list[tuple[str, float]]()
    task = Task(1, "talk", ("Thursday", "And then?"))
    bench(
        load("toy"),
        [task],
        ["jacobi", "prompt_lookup"],
        max_new_tokens=4,
        progress=lambda what, share: got.append((what, share)),
    )
    measured = [(what.removeprefix("measuring "), share) for what, share in got if what.startswith("measuring ")]
    names = ["autoregressive", "jacobi", "prompt_lookup"]
    assert [name for name, _ in measured] == names * 2
    assert [share for _, share in measured] == pytest.approx([index / 6 for index in range(6)])
