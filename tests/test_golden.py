"""Golden traces: what every method wrote down when its record was last reviewed.

A change of the format or of a method's steps shows here as a diff of text files. Where the change is meant,
`python -m tests.test_golden` writes them anew; a change of format also raises `decoding.types.SCHEMA`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from decoding.methods import METHODS
from decoding.trace.file import read_trace, write_trace
from decoding.types import Timing, Trace
from tests import GOLDEN
from tests.toys import SETTINGS, counted_text, engine

PROMPT = (3, 1, 4, 1, 5, 9, 2, 6)


def trace_of(method: str) -> Trace:
    """Make a run of a method without anything that differs between machines: times, versions and their names."""
    result = engine(counted_text()).generate(
        PROMPT,
        method,
        params=SETTINGS[method][0],
        sampling={"temperature": 0.7, "seed": 4},
        max_new_tokens=16,
        record="full",
    )
    summary = replace(result.summary, prefill_seconds=0.0, decode_seconds=0.0, tokens_per_second=None, timing=Timing())
    steps = tuple(replace(step, timing=Timing()) for step in result.trace.steps)
    header = replace(result.trace.header, versions={}, processor=None, threads=None)
    return replace(result.trace, header=header, steps=steps, summary=summary)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_is_recorded_as_it_was_when_last_reviewed(method: str) -> None:
    """Guards the schema and the steps of every method against changes that nobody meant."""
    assert trace_of(method) == read_trace(GOLDEN / f"{method}.jsonl")


def test_no_golden_trace_is_left_behind() -> None:
    """A file that no method is compared with guards nothing."""
    assert {path.stem for path in GOLDEN.glob("*.jsonl")} == set(METHODS)


if __name__ == "__main__":
    for name in METHODS:
        write_trace(trace_of(name), GOLDEN / f"{name}.jsonl")
