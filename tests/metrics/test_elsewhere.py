"""The speed-up that recorded steps would have on devices whose passes were measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.metrics import Selection, elsewhere, measure
from analysis.metrics.elsewhere import measured_devices

from .tables import Row, run, selection, step

RUNS = [run(0), run(1, method="autoregressive")]


def timed(number: int, accepted: int, rows: int, of: int, **ms: float) -> Row:
    return step(number, accepted, rows - 1, of=of, fed=rows, **{f"{name}_ms": value for name, value in ms.items()})


def record(rows: int) -> Selection:
    """A step of three tokens that drafts for 2 of the 10 ms of an autoregressive one, whose pass takes 8."""
    steps = [timed(number, 2, rows, 0, draft=2, forward=12, other=2, total=16) for number in (0, 1, 2)]
    steps += [timed(number, 0, 1, 1, draft=0, forward=8, other=2, total=10) for number in (0, 1, 2)]
    return selection(RUNS, steps).where(method="draft_model")


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A shipped machine, and the user's own."""
    shipped, own = tmp_path / "assets", tmp_path / "specscope" / "costs"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(elsewhere, "_SHIPPED", shipped)
    for folder, device, times in ((shipped, "A GPU", [2, 2, 2.4]), (own, "mine", [4, 6, 12])):
        folder.mkdir(parents=True)
        long = {"shape": "7B", "context": 1024, "rows": [1, 2], "milliseconds": [1, 9]}
        shapes = [{"shape": "7B", "context": 128, "rows": [1, 2, 6], "milliseconds": times}, long]
        content = {"device": device, "dtype": "float16", "shapes": shapes}
        (folder / "a.json").write_text(json.dumps(content))
    return shipped, own


def test_passes_have_the_price_of_the_other_device() -> None:
    """Three tokens over 1 + 0.2 of drafting, nothing outside passes, and 0.8 for each pass more."""
    result = measure("expected_elsewhere", record(rows=4))
    costs = {"7B on A GPU, float16": 1.1, "7B on mine, float16": 2.25}  # half-way from 2 to 6 rows
    expected = [["this record", 3 / 1.6, "measured"]]
    expected += [[name, pytest.approx(3 / (1.2 + 0.8 * (cost - 1))), "projected"] for name, cost in costs.items()]
    assert result["rows"] == expected and result["columns"] == ["device", "times", "known by"]
    assert "Measured: 1.88 times" in result["sentence"] and "2.34 times with 7B on A GPU" in result["sentence"]


def test_the_record_itself_is_met_where_its_passes_cost_the_same(folders: tuple[Path, Path]) -> None:
    """The formula leaves nothing out: with c(4) of the record its own speed-up comes back."""
    for folder in folders:
        (folder / "a.json").unlink()
    shape = {"shape": "this", "context": 1, "rows": [1, 4], "milliseconds": [8, 12]}
    (folders[0] / "b.json").write_text(json.dumps({"device": "one", "dtype": "float32", "shapes": [shape]}))
    (_, here, _), (_, there, _) = measure("expected_elsewhere", record(rows=4))["rows"]
    assert there == pytest.approx(here)


def test_nothing_is_projected_beyond_the_rows_that_were_measured(folders: tuple[Path, Path]) -> None:
    assert all(np.isnan(device.at(np.array([7.0]))[0]) for device in measured_devices(folders))
    assert "as many rows" in (measure("expected_elsewhere", record(rows=7))["reason"] or "")


def test_what_cannot_be_read_is_left_out(folders: tuple[Path, Path]) -> None:
    """A file that a later version wrote, or that was cut, costs nobody the other devices."""
    for name, content in (("b", "{"), ("c", "{}"), ("d", '{"device": "x", "dtype": "y", "shapes": [{}]}')):
        (folders[1] / f"{name}.json").write_text(content)
    assert [device.name for device in measured_devices(folders)] == ["7B on A GPU, float16", "7B on mine, float16"]


def test_a_record_without_phases_says_so() -> None:
    steps = [step(number, 1, 1, of=of, fed=2, total_ms=9) for of in (0, 1) for number in (0, 1)]
    result = measure("expected_elsewhere", selection(RUNS, steps).where(method="draft_model"))
    assert "phases" in (result["reason"] or "")
