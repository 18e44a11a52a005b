"""When a run's speedup over autoregressive decoding is a number, and when it is a measuring error."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.run_speed import median_run, speedup
from decoding.trace.metrics import credible_speedup, summarise
from decoding.types import Step, Summary, Timing


def run(tokens: list[int], ms: float, prefill: float = 40.0, **changes: Any) -> Summary:
    """Make a run whose steps write so many tokens, and take so long after the first."""
    steps, start = list[Step](), 4
    for k, count in enumerate(tokens):
        timing = Timing(total_ms=ms if k else prefill)
        steps.append(Step(k, start, 0, (5,) * count, count - 1, count - 1, count, timing))
        start += count
    return replace(summarise(steps, "length", ""), **changes)


PLAIN = run([1] * 12, 10.0)  # 150 ms


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (run([3] * 4, 15.0), 150 / 85),
        (run([3] * 8, 15.0), 2 * 150 / 145),  # twice the text
        (run([3] * 4, 100.0), 150 / 340),
        (PLAIN, 1.0),
        (run([1] * 12, 9.7), None),  # one token a step, and faster: noise
        (run([1] * 12, 9.97), 150 / 149.67),  # not above what is shown
        (run([3] * 4, 3.0), None),  # 3.06 with 3 tokens per step
        (run([3], 10.0), None),  # no step but that which reads the prompt
        (run([3] * 4, 15.0, finish="cancelled"), None),
        (run([3] * 4, 15.0, finish="time"), None),
        (run([3] * 4, 0.0, prefill=0.0), None),
    ],
)
def test_a_speedup_counts_the_whole_run_and_is_never_above_the_tokens_per_step(
    other: Summary, expected: float | None
) -> None:
    """1.43 tokens per step were shown beside a speedup of 1.50, but a step costs what a plain one costs, or more."""
    assert speedup(other, PLAIN) == (expected and pytest.approx(expected))


def test_a_baseline_that_was_cut_short_measures_nothing() -> None:
    assert speedup(run([3] * 4, 15.0), replace(PLAIN, finish="time")) is None


def test_a_speedup_above_the_tokens_per_step_is_a_measuring_error() -> None:
    """The page's races follow the same rule in JavaScript: its test reads the same cases."""
    cases = json.loads(Path(__file__).with_name("speedups.json").read_text())
    for wrong, tokens in [*cases["measuring errors"], (None, 2.0), (float("nan"), 2.0), (float("inf"), 2.0)]:
        assert credible_speedup(wrong, tokens) is None
    for credible, tokens in cases["credible"]:
        assert credible_speedup(credible, tokens) == credible


def test_the_median_run_is_that_of_the_middle_speed() -> None:
    """Of a run's text more may have been written: its time alone says nothing."""
    runs = [run([1] * 12, 10.0), run([3] * 8, 15.0), run([1] * 4, 30.0)]
    assert median_run(runs) is runs[0]
