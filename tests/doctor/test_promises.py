"""What a drafter's card or training log promises, and what is made of files that hold something else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.doctor.evidence import check_promise
from analysis.doctor.measure import AcceptedGuesses
from analysis.doctor.references import Promise, promise

CARD = "| | loss, nats | top-1 |\n|---|---:|---:|\n| guess 1 | 0.9 | 77.5% |\n| guess 2 | 1 | 60% |\n"


def logged(*shares: float) -> str:
    return json.dumps({"step": 1, "held_out": {"heads": [{"top": [share, 1.0]} for share in shares]}})


def written(folder: Path, log: str, card: str = "") -> Path:
    (folder / "training").mkdir()
    (folder / "training" / "log.jsonl").write_text(log, encoding="utf-8")
    (folder / "README.md").write_text(card, encoding="utf-8")
    return folder


def test_a_card_goes_before_the_log_and_the_log_before_nothing(tmp_path: Path) -> None:
    """A training that was stopped has a log alone; its last line may be cut off, and most lines measure nothing."""
    lines = [logged(0.1, 0.05), logged(0.4, 0.25), json.dumps({"step": 3}), logged(0.9)[:-9]]
    folder = written(tmp_path, "\n".join(lines), "no table")
    assert promise(folder) == Promise({1: 0.4, 2: 0.25}, "training log")
    (folder / "README.md").write_text(CARD, encoding="utf-8")
    assert promise(folder) == Promise({1: 0.775, 2: 0.6}, "card")


@pytest.mark.parametrize(
    "log",
    [
        "",
        "\x00" * 50,
        "[" * 100_000,
        json.dumps({"held_out": {"heads": []}}),
        json.dumps({"held_out": {"heads": [{"top": []}]}}),
        json.dumps({"held_out": {"heads": [{"top": ["0.5"]}, None]}}),
        logged(1.5),
        logged(float("nan")),
        '{"held_out": []}\n7',
    ],
)
def test_what_is_no_log_promises_nothing(log: str, tmp_path: Path) -> None:
    assert promise(written(tmp_path, log)) is None


def test_a_drafter_that_keeps_a_third_of_its_promise_is_not_fine() -> None:
    def measured(right: int) -> AcceptedGuesses:
        return AcceptedGuesses(np.array([float(right)]), np.array([100.0]), (right / 100,))

    promised = Promise({1: 0.6}, "training log")
    assert check_promise(promised, measured(55)).fine and not check_promise(promised, measured(20)).fine
    assert "60% in its training log" in check_promise(promised, measured(20)).sentence
    assert "60% on its card" in check_promise(Promise({1: 0.6}, "card"), measured(20)).sentence


def test_positions_of_one_text_are_not_taken_for_independent() -> None:
    """A few easy texts among hard ones make a share that other texts would not have."""
    places, promised = np.full(24, 17.0), Promise({1: 0.6}, "card")

    def measured(firsts: list[float]) -> AcceptedGuesses:
        right = np.array(firsts)
        return AcceptedGuesses(right, places, (float(right.sum() / places.sum()),), right)

    alike, apart = measured([4.0] * 24), measured([16.0] * 6 + [0.0] * 18)
    assert alike.survival == apart.survival and alike.survival[0] < 0.25
    assert apart.first_error > 3 * alike.first_error
    assert check_promise(promised, apart).fine and not check_promise(promised, alike).fine
