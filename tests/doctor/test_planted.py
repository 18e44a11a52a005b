"""Faults planted into good drafters are found, named or not, and drafters without one are called healthy.

Thresholds were chosen by every second case of either list, but for two that healthy ones of the others changed: how
sure of themselves Medusa heads may be, and how the step of a rounding is measured.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.doctor.examine import ExaminationReport, examine, finish
from decoding import smollm2
from decoding.errors import UnfitError

from ..tiers import choose
from .broken import silent
from .planted import FAULTS, HEALTHY, Planted, open_planted, texts_of

QUICK = {
    "pocket-medusa-transposed",
    "pocket-medusa-random",
    "pocket-kangaroo-gate_up_swapped",
    "pocket-draft-q_heads_rotated",
    "pocket-draft-attention_random",
    "pocket-medusa-noise_of_20%",
    "pocket-kangaroo-as_it_is",
}


def examined(planted: Planted, folder: Path) -> ExaminationReport:
    if planted.model == "smollm2" and smollm2.here() is None:
        pytest.skip("needs SmolLM2's weights")
    return finish(examine(open_planted(planted, folder), texts_of(planted), planted.model), silent)


def cases(planted: list[Planted]) -> list[object]:
    """All of them, of which some belong to the default tier."""
    quick = [each for each in planted if each.id in QUICK]
    return [pytest.param(*case.values, marks=case.marks, id=case.values[0].id) for case in choose(planted, quick)]


@pytest.mark.parametrize("planted", cases(FAULTS))
def test_a_planted_fault_is_never_called_healthy(planted: Planted, tmp_path: Path) -> None:
    try:
        report = examined(planted, tmp_path / "drafter")
    except UnfitError as error:  # files that contradict each other: the command reports the entry
        assert error.flag in planted.flags
        return
    assert not report.healthy, report.verdict
    if planted.flags:
        assert {fault.flag for fault in report.faults} & {*planted.flags}, report.verdict
    else:
        assert report.condition == "poor" and report.verdict.startswith("Works poorly, cause unknown")
        assert any(not each.fine and each.sentence in report.verdict for each in report.evidence)


@pytest.mark.parametrize("planted", cases(HEALTHY))
def test_a_drafter_that_is_wired_right_is_healthy(planted: Planted, tmp_path: Path) -> None:
    report = examined(planted, tmp_path / "drafter")
    assert report.healthy, report.verdict
    assert all(each.fine for each in report.evidence) and report.evidence[0].sentence in report.verdict
