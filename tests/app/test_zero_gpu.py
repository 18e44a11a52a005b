"""Runs on ZeroGPU: forked, charged to their visitor, for as long as they need, and refused in a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from app.server import zero_gpu
from app.server.gpu_time import LEAST, MOST, borrow, sentence_of
from app.server.zero_gpu import is_active
from decoding import load
from decoding.errors import SpecscopeError
from decoding.sampling_params import Sampling
from tests import ROOT
from tests.test_child_process import is_gone_within
from tools.attack.attack import FORMS
from tools.page import serving

PRETENDED = FORMS["zerogpu"]
needs_spaces = pytest.mark.skipif(find_spec("spaces") is None, reason="spaces is not installed: pip install spaces")


@pytest.mark.long
@needs_spaces
@pytest.mark.slow  # a process of its own, which forks others
def test_runs_and_races_are_live_and_the_visitor_pays() -> None:
    command = [sys.executable, "-m", "tests.app.zero_gpu_script"]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    facts: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    run, branch, race, examination, shorter, illegal, refused, killed, after, end = facts
    assert run["models"] == ["toy"]  # the other one could not be placed
    assert run["same"] and run["check"] == 24 and run["forked"]  # what the engine writes here, and checked there
    assert run["tokens"] == ["e30.e30.e30"]  # the visitor's: without one the Space would pay
    assert run["durations"] == ["10"] and run["paths"] == ["/schedule", "/allow", "/release"]
    assert branch["branched"]
    assert race["raced"] == 2 and len(race["durations"]) == 2
    assert "only runs and races are live" in examination["examined"]["sentence"]
    assert "/schedule" not in examination["calls"]  # the race's last GPU may be given back as late as now
    assert shorter["shorter"] == ["15", "12"]  # as much as is left
    assert illegal["illegal"] == ["40", "20"] and illegal["check"] > 0
    assert refused["refused"]["kind"] == "fault" and "try again in 1:00:00" in refused["refused"]["sentence"]
    assert "taken away before the run had ended" in killed["killed"] and killed["stored"] == killed["shown"] == 8
    assert after["after"] == 24
    assert end["ended"] and end["closed"]  # no other process holds a visitor's connection open


@pytest.mark.long
@needs_spaces
@pytest.mark.slow
def test_nothing_outlives_the_server(tmp_path: Path) -> None:
    """The processes with the GPU would hold its port and pipes."""
    with serving(tmp_path / "log", "--model", "toy", "--models", str(_toy(tmp_path)), module=PRETENDED) as page:
        assert '"kind":"check"' in page.visitor().run(run_length=8)
        children = page.children
    assert children and all(is_gone_within(pid, 5.0) for pid in children) and page.process.returncode == 0


def _toy(folder: Path) -> Path:
    path = folder / "models.toml"
    path.write_text("[[model]]\nname = 'toy'\nmodel = 'toy'\n")
    return path


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("You have exceeded your free ZeroGPU quota (90s requested vs. 3s left). Try again in 2:03:04.", "in 2:03:04"),
        ("You have exceeded your ZeroGPU runs limit. ", "used up: try again tomorrow"),
        ("The requested GPU duration (15s) is larger than the maximum allowed", "try again later"),
        ("Space app has reached its GPU limit. Try", "this Space's GPU time on ZeroGPU is used up"),
        ("No GPU was available after 60s. Retry later", "no GPU is free now"),
        ("GPU task aborted", "was taken away before the run had ended"),
    ],
)
def test_every_refusal_is_a_sentence_that_leads_to_recorded_runs(message: str, sentence: str) -> None:
    said = sentence_of(message)
    assert sentence in said and "open a recorded run" in said


class Lender:
    """Lends the GPU as `spaces` does, and counts its seconds as a GPU's."""

    def __init__(self, factor: float, left: int, longest: int) -> None:
        self.factor, self.left, self.longest = factor, left, longest
        self.asked, self.granted = list[int](), 0

    def __call__(self, name: str, asked: str) -> Iterator[str]:
        seconds = json.loads(asked)["seconds"]
        self.asked.append(seconds)
        requested = round(seconds * self.factor)
        if requested > self.longest:
            raise gr.Error(f"The requested GPU duration ({requested}s) is larger than the maximum allowed")
        if requested > self.left:
            raise gr.Error(
                f"You have exceeded your quota ({requested}s requested vs. {self.left}s left). Try again in 1:00."
            )
        self.granted = requested
        yield "line"


@pytest.mark.parametrize("factor", [1.0, 1.5])
@pytest.mark.parametrize("longest", [15, 25, 1000])
def test_who_has_enough_left_for_a_run_gets_one(factor: float, longest: int) -> None:
    """Asking for 60 seconds where 59 are left, or for 13 where 10 are lent, must not end a visitor's day."""
    for seconds in range(LEAST, MOST + 1):
        for left in range(70):
            lender = Lender(factor, left, longest)
            try:
                got = [*borrow(lender, "toy", {"seconds": seconds})]
            except SpecscopeError as error:
                got = []
                assert "requested" not in str(error) and "illegal" not in str(error)
            assert (got == ["line"]) == (round(LEAST * factor) <= min(left, longest)), (seconds, left)
            assert len(lender.asked) <= 5 and lender.granted <= left


def test_a_run_that_is_stopped_waits_for_no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A race asks for the check of every run: one that never came held the server's only turn for ever."""
    toy = load("toy")
    monkeypatch.setitem(zero_gpu._engines, "toy", toy)
    monkeypatch.setattr(zero_gpu, "_on_gpu", zero_gpu._decode)
    cancel, checks = threading.Event(), list[object]()
    run = zero_gpu.PlacedEngine("toy", toy).decode(
        "Monday", "autoregressive", {}, Sampling(), 200, cancel=cancel, time_budget=9.0
    )
    cancel.set()
    steps = [*run]
    asking = threading.Thread(target=lambda: checks.append(run.take_check()), daemon=True)
    asking.start()
    asking.join(20)
    assert checks == [None] and len(steps) < 200


def test_elsewhere_nothing_of_it_happens() -> None:
    assert not is_active()
