"""The tests of sampled guesses, where a place has several, which no method of ours draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analysis.recheck.tested import untrue_tests
from decoding.trace import read_trace
from decoding.types import Role, Step, Timing, Trace
from tests import ROOT

# Guess 1 is rejected, guess 2 is accepted, and guess 3 was a guess like them, which then needed no test.
COLUMNS: dict[str, Any] = {
    "tokens": (9, 1, 2, 3),
    "parents": (-1, 0, 0, 0),
    "roles": (Role.ROOT, *[Role.VERIFY] * 3),
    "path": (0, 2),
    "p": (None, 0.1, 0.6, 0.3),
    "q": (None, 0.5, 0.4, 0.1),
    "u": (None, 0.9, 0.7, None),
}


def found(**columns: Any) -> list[str]:
    header = read_trace(ROOT / "tests" / "golden" / "draft_model.jsonl").header
    header = replace(header, sampling={"temperature": 1.0})
    step = Step(0, 4, 0, columns.pop("emitted", (2, 7)), 1, 3, 4, Timing(), **COLUMNS | columns)
    return [each.field for each in untrue_tests(Trace(header, (step,), None), step)]


@pytest.mark.parametrize(
    ("columns", "fields"),
    [
        ({}, []),
        ({"u": ()}, []),  # an older record
        ({"u": (None, 0.1, 0.7, None)}, ["u[1]"]),  # 0.1 * 0.5 < 0.1: guess 1 is accepted
        ({"u": (None, 0.2, 0.7, None)}, []),  # a tie, which rounding may have made
        ({"u": (None, 0.9, 0.999, None), "p": (None, 0.1, 0.2, 0.7)}, []),  # the residual may hold more of it
        ({"p": (None, 0.1, 0.0, 0.9)}, ["u[2]"]),  # what the target lacks is in no residual
        ({"u": (None, 0.9, 0.7, 0.5)}, ["u[3]"]),
        ({"u": (None, 0.9, None, None)}, ["u[2]"]),
        ({"u": (0.5, 0.9, 0.7, None)}, ["u[0]"]),
        ({"q": (None, None, 0.4, 0.1)}, ["u[1]"]),
        ({"emitted": (3, 7), "path": (0, 3), "u": (None, 0.9, 0.7, 0.5)}, []),  # 2 may be left with less than its p
        ({"emitted": (8,), "path": (0,), "u": (None, 0.9, 0.7, 0.5)}, []),
    ],
)
def test_each_test_must_have_come_out_as_recorded(columns: dict[str, Any], fields: list[str]) -> None:
    assert found(**columns) == fields
