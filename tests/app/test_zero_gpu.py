"""Runs on ZeroGPU: forked, charged to their visitor, for as long as they need, and refused in a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from app.server.zero_gpu import is_active, sentence_of
from tests import ROOT

needs_spaces = pytest.mark.skipif(find_spec("spaces") is None, reason="spaces is not installed: pip install spaces")


@needs_spaces
@pytest.mark.slow  # a process of its own, which forks others
def test_runs_and_races_are_live_and_the_visitor_pays() -> None:
    command = [sys.executable, "-m", "tests.app.zero_gpu_script"]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    facts: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    run, branch, race, examination, shorter, refused, after, end = facts
    assert run["models"] == ["toy"]  # the other one could not be placed
    assert run["same"] and run["check"] == 24 and run["forked"]  # what the engine writes here, and checked there
    assert run["tokens"] == ["e30.e30.e30"]  # the visitor's: without one the Space would pay
    assert run["durations"] == ["10"] and run["paths"] == ["/schedule", "/allow", "/release"]
    assert branch["branched"]
    assert race["raced"] == 2 and len(race["durations"]) == 2
    assert "only runs and races are live" in examination["examined"]["sentence"] and not examination["calls"]
    assert shorter["shorter"] == ["15", "12"]  # as much as is left
    assert refused["refused"]["kind"] == "fault" and "try again in 1:00:00" in refused["refused"]["sentence"]
    assert after["after"] == 24
    assert end["ended"] and end["closed"]  # no other process holds a visitor's connection open


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("You have exceeded your free ZeroGPU quota (90s requested vs. 3s left). Try again in 2:03:04.", "in 2:03:04"),
        ("You have exceeded your ZeroGPU runs limit. ", "used up: try again tomorrow"),
        ("Space app has reached its GPU limit. Try", "this Space's GPU time on ZeroGPU is used up"),
        ("No GPU was available after 60s. Retry later", "no GPU is free now"),
        ("GPU task aborted", "was taken away before the run had ended"),
    ],
)
def test_every_refusal_is_a_sentence_that_leads_to_recorded_runs(message: str, sentence: str) -> None:
    said = sentence_of(message)
    assert sentence in said and "open a recorded run" in said


def test_elsewhere_nothing_of_it_happens() -> None:
    assert not is_active()
