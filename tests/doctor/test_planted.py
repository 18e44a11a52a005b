"""Faults planted into good drafters are found, named or not, and drafters without one are called healthy.

Thresholds were chosen by every second case of either list, but for three that the others changed: how sure of
themselves Medusa heads may be, how the step of a rounding is measured, and by how much a share may be low by chance.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from analysis.doctor.examine import ExaminationReport
from analysis.doctor.measure import measure_wiring
from cli.main import main
from decoding import smollm2
from decoding.errors import UnfitError

from ..tiers import nightly, slow
from .breaks import same
from .planted import (
    FAULTS,
    HEALTHY,
    HELD_OUT,
    LATER,
    TRAINED,
    P,
    Planted,
    Trained,
    folder_of,
    opened,
    plant,
    report_on,
    size_of,
    texts_for,
)

QUICK = {
    "pocket-dflash-taps_too_high",
    "pocket-medusa-random",
    "pocket-medusa-head_2_random",
    "pocket-medusa-noise_of_20%",
}


MENDED = 0.85  # of what the drafter writes when it is well


@cache
def well(model: str, kind: str) -> float:
    """Tokens per step of the drafter that is shipped."""
    drafter = opened(folder_of(model, kind), kind, model)
    size = size_of(Planted(model, kind, "", same))
    texts = [text for text in texts_for(model, size) if len(text.places(drafter.depth))]
    return measure_wiring(drafter, drafter.given, texts, drafter.depth).tokens_per_step


def examined(planted: Planted, folder: Path) -> ExaminationReport:
    if planted.model == "smollm2" and smollm2.here() is None:
        pytest.skip("needs SmolLM2's weights")
    drafter = opened(plant(planted, folder), planted.kind, planted.model)
    return report_on(drafter, size_of(planted), model=planted.model)


def cases(planted: list[Planted], each_of: int, first: int = 0) -> list[object]:
    """All of them: few in the default tier, one in so many in the other, and the rest for whoever tunes the doctor."""
    marks = [() if each.id in QUICK else nightly if (at - first) % each_of else slow for at, each in enumerate(planted)]
    return [pytest.param(each, marks=mark, id=each.id) for each, mark in zip(planted, marks, strict=True)]


# The first fourteen had been called healthy once: a test each of a third of them, and nightly of all.
REPORTED = 14


@pytest.mark.long
@pytest.mark.parametrize(
    "planted",
    [
        *cases(FAULTS[:REPORTED], 3),
        *cases([*FAULTS[REPORTED:], *HELD_OUT, *LATER], 36),
    ],
)
def test_a_planted_fault_is_never_called_healthy(planted: Planted, tmp_path: Path) -> None:
    try:
        report = examined(planted, tmp_path / "drafter")
    except UnfitError as error:  # files that contradict each other: the command reports the entry
        assert error.flag in planted.flags
        return
    assert not report.healthy and planted.seen.lower() in report.verdict.lower(), report.verdict
    if planted.flags:
        named = [fault for fault in report.faults if fault.flag in planted.flags]
        assert named, report.verdict
        if any(fault.interval is not None for fault in named):  # a remedy that was measured mends nearly all
            assert report.best is not None
            assert report.best.tokens_per_step >= MENDED * well(planted.model, planted.kind), report.verdict
    else:
        assert report.condition == "poor" and report.verdict.startswith("Works poorly, cause unknown")
        assert any(not each.fine and each.sentence[1:] in report.verdict for each in report.evidence)


@pytest.mark.parametrize("planted", cases(HEALTHY, 10, 5))
def test_a_drafter_that_is_wired_right_is_healthy(planted: Planted, tmp_path: Path) -> None:
    report = examined(planted, tmp_path / "drafter")
    assert report.healthy, report.verdict
    assert all(each.fine for each in report.evidence) and report.evidence[0].sentence[1:] in report.verdict


NAMED = [Trained("medusa", 1, 30), Trained("eagle", 1, 30), Trained("eagle", 1, 80), *TRAINED]


def train(trained: Trained, folder: Path, more: Sequence[str] = ()) -> None:
    """Train a drafter of pocket for as little as it says."""
    few = ["--seed", str(trained.seed), "--steps", str(trained.steps), "--lines", "4", "--length", "128"]
    few += ["--out", str(folder), "--warm-up", "4", "--threads", "1", "--device", "cpu", "--json", *more]
    kind = {"eagle": "eagle3", "draft": "drafter"}.get(trained.kind, trained.kind)
    assert main(["train", kind, "--model", P, *few]) == 0


@nightly
@pytest.mark.parametrize("trained", NAMED, ids=lambda trained: trained.id)
def test_a_drafter_that_learnt_little_is_healthy(trained: Trained, tmp_path: Path) -> None:
    train(trained, tmp_path)
    report = report_on(opened(tmp_path, trained.kind), (8, 32))
    assert report.healthy and report.given is not None, report.verdict
    little = report.given.tokens_per_step < 1.5
    assert little == ("It is wired right, but gains little." in report.verdict), report.verdict


@pytest.mark.long
@pytest.mark.parametrize("value", [pytest.param(False, marks=slow), pytest.param(True, marks=nightly)])
def test_a_missing_flag_is_decided_for_a_drafter_that_learnt_little(value: bool, tmp_path: Path) -> None:
    """After 40 steps one guess in five is right with either value: the distance from the target tells them apart."""
    train(Trained("eagle", 1, 40), tmp_path, [] if value else ["--norms", "none"])
    as_trained = report_on(opened(tmp_path, "eagle"), (8, 32))
    assert as_trained.healthy and "It is wired right, but gains little." in as_trained.verdict, as_trained.verdict
    config = json.loads((tmp_path / "config.json").read_text())
    assert config.pop("norm_before_residual") is value
    (tmp_path / "config.json").write_text(json.dumps(config))
    report = report_on(opened(tmp_path, "eagle"), (8, 32))
    assert [(fault.flag, fault.better) for fault in report.faults] == [("norm_before_residual", value)]
    assert f"set norm_before_residual to {str(value).lower()} in config.json" in report.verdict
    assert "doctor" not in report.verdict and all(each.fine for each in report.evidence), report.verdict
