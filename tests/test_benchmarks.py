"""The benchmarks' command line; what they measure is seen when they run."""

from __future__ import annotations

import sys

import pytest

from benchmarks import gpu
from benchmarks.measure import command


@pytest.mark.parametrize("flag", ["--help", "--nonsense"])
def test_flags_are_read_before_anything_is_measured(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", flag])
    with pytest.raises(SystemExit):
        command("Measures.", lambda: pytest.fail("it measured"))


def test_the_benchmark_for_devices_measures_a_tiny_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a device, its hour is for measuring, not for finding out that a table cannot be made."""
    monkeypatch.setattr(gpu, "TOKENS", 6)
    monkeypatch.setattr(gpu, "ROUNDS", 2)
    monkeypatch.setattr(gpu, "NODES", (1, 8))
    said = gpu.measure("tiny", "cpu", None, contexts=(40,))
    speeds, costs = ([line.split("|")[1:-1] for line in part.splitlines()] for part in said.split("\n\n"))
    assert float(speeds[2][1]) > 0 and speeds[2][3].strip().endswith("x")
    assert [row[1].strip() for row in costs[2:]] == ["as usual", "SPECSCOPE_GRAPHS=off", "SPECSCOPE_STEP_ROWS=128"]
    assert costs[2][2].strip() == "1.00" and all(float(row[3]) > 0 for row in costs[2:])


def test_prompts_grow() -> None:
    """Each length is met once."""
    prompts = gpu.Prompts(100, 1000)
    assert [len(prompts.next()) for _ in range(3)] == [1000, 1037, 1074]


def test_what_methods_gain_is_measured_on_a_real_model() -> None:
    said = gpu.gains("pocket", "cpu", 1)
    names = [line.split("|")[1].strip() for line in said.splitlines()[2:]]
    assert {"autoregressive", "medusa", "transformers", "transformers-prompt-lookup"} <= set(names)
