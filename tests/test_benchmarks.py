"""The benchmarks' command line; what they measure is seen when they run."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.prompts.tasks import Task
from benchmarks import device_costs, gpu, gpu_first, gpu_kernels, prediction
from benchmarks.gpu_shapes import Prompts
from benchmarks.measure import command
from decoding.packed import ASSETS


@pytest.mark.parametrize("flag", ["--help", "--nonsense"])
def test_flags_are_read_before_anything_is_measured(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", flag])
    with pytest.raises(SystemExit):
        command("cpu", "Measures.", lambda: pytest.fail("it measured"))


def test_the_benchmark_for_devices_is_rehearsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a device, its minutes are for measuring, not for finding out that a table cannot be made."""
    monkeypatch.setattr(gpu, "TOKENS", 6)
    monkeypatch.setattr(gpu, "ROUNDS", 2)
    out = tmp_path / "rehearsal"
    flags = ["--device", "cpu", "--shapes", "tiny", "--models", "none", "--contexts", "40", "--nodes", "1,8"]
    gpu.main([*flags, "--settings", "no graphs,equal rows", "--probe", "--out", str(out)])
    speeds, costs, probe = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert min(speeds["tokens_per_second"].values()) > 0
    assert {*speeds["tokens_per_second"]} == {"as usual", "no graphs", "equal rows", "transformers generate"}
    assert costs["nodes"] == [1, 8] and costs["costs"]["as usual"][0] == 1.0
    assert all(cost > 0 for row in costs["costs"].values() for cost in row)
    assert {*probe["passes"]} == {"1", "8", "64"}
    *_, last = out.with_suffix(".md").read_text(encoding="utf-8").split("### Summary")
    assert last.split()[0] == "tiny" and "c(8)" in last


def test_a_part_that_fails_or_comes_too_late_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The others are worth having; a summary of what was never measured is not."""
    report = gpu.DeviceReport(None, 60.0)

    def fail() -> tuple[str, dict[str, Any]]:
        raise RuntimeError("CUDA out of memory")

    assert report.part("Cost: 7B", fail) is None
    assert report.part("Speed: 7B", lambda: ("a table", {"figure": 1})) == {"figure": 1}
    report.seconds = -1.0
    assert report.part("Speed: 13B", lambda: ("never", {})) is None
    printed = capsys.readouterr().out
    assert "Cost: 7B: failed: RuntimeError: CUDA out of memory" in printed and "a table" in printed
    assert "Speed: 13B: left out" in printed and "never" not in printed
    assert [part["name"] for part in report.parts] == ["Speed: 7B"]


@pytest.mark.parametrize("flags", [["--shapes", "70B"], ["--nodes", "0,8"], ["--peers", "vllm"], ["--contexts", "x"]])
def test_flags_of_the_benchmark_for_devices(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A slip must not cost a device's minutes."""
    with pytest.raises(SystemExit):
        gpu.flags(["--device", "cpu", *flags])
    assert flags[0] in capsys.readouterr().err


@pytest.mark.slow
def test_the_first_minutes_on_a_device_are_rehearsed(tmp_path: Path) -> None:
    """Each stage is a process; one that hangs or fails costs the others nothing."""
    assert gpu_first.run("good", 20, ["-c", "print(1)"], tmp_path).startswith("good: ended well")
    assert gpu_first.run("bad", 20, ["-c", "raise SystemExit(3)"], tmp_path).startswith("bad: ended with 3")
    assert gpu_first.run("late", 1, ["-c", "import time; time.sleep(60)"], tmp_path).startswith("late: ran out of time")
    gpu_first.main(["--device", "cpu", "--shapes", "tiny", "--only", "speed", "--out", str(tmp_path)])
    assert "tiny at 40" in (tmp_path / "speed.md").read_text(encoding="utf-8")


def test_a_kernel_that_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A device's hour is short, and what one kernel costs is worth knowing whatever another does."""
    pytest.importorskip("triton")
    merge = gpu_kernels.cases(["merge"])[0]

    def fail(*inputs: object) -> None:
        raise RuntimeError("no kernel image\nis available | for execution")

    monkeypatch.setattr(gpu_kernels, "cases", lambda names: [replace(merge, name="broken", ours=fail), merge])
    monkeypatch.setattr(sys, "argv", ["benchmark", "--device", "cpu", "--dtype", "float16"])
    gpu_kernels.main()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows[2:]] == 3 * ["broken"] + 3 * ["merge"] and len({*map(len, rows)}) == 1
    assert rows[2][3] == "FAILED: RuntimeError: no kernel image is available / for execution"
    assert all(float(error) < 2.0 for error in rows[-1][3:5]) and float(rows[-1][5]) > 0


def test_the_race_plays_what_was_measured() -> None:
    """The page says of its numbers that they were."""
    measured = json.loads((ASSETS / "costs" / "nvidia-h200.json").read_text(encoding="utf-8"))
    assert device_costs.SCRIPT.read_text(encoding="utf-8") == device_costs.script(measured)
    for shape in measured["shapes"]:
        assert len(shape["rows"]) == len(shape["milliseconds"]) and shape["rows"] == sorted(shape["rows"])


def test_prompts_grow() -> None:
    """Each length is met once."""
    prompts = Prompts(100, 1000)
    assert [len(prompts.next()) for _ in range(3)] == [1000, 1037, 1074]


@pytest.mark.slow  # every method and transformers on a model; tests/bench has the parts
def test_what_methods_gain_is_measured_on_a_real_model() -> None:
    _, figures = gpu.gains("pocket", "cpu", 1)
    names = {row[key] for kind, key in (("rows", "method"), ("peers", "name")) for row in figures[kind]}
    assert {"autoregressive", "medusa", "transformers", "transformers-prompt-lookup"} <= names


def test_questions_are_halved_within_each_kind() -> None:
    """Or a prediction would be fitted on chat and measured on code."""
    tasks = [Task(str(at), kind, ("?",)) for at, kind in enumerate("aababbbca")]
    one, other = (Counter(task.category for task in half) for half in prediction.halves(tasks, 2))
    assert one == other == {"a": 2, "b": 2}
    assert {task.id for half in prediction.halves(tasks, 1) for task in half} == {"0", "1", "2", "4"}
