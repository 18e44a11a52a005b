"""Compares the speeds of whole runs."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.trace.metrics import WHOLE, credible_speedup
from decoding.types import Summary


def speedup(run: Summary, plain: Summary) -> float | None:
    """Compare a run's speed with that of autoregressive decoding of its prompt, both with reading the prompt.

    None if one of them was cut short or has a single step, or if the ratio is a measuring error.
    """
    if any(each.finish not in WHOLE or each.steps < 2 for each in (run, plain)):
        return None
    seconds, plain_seconds = (each.prefill_seconds + each.decode_seconds for each in (run, plain))
    if seconds <= 0 or plain_seconds <= 0:
        return None
    return credible_speedup(run.new_tokens / seconds / (plain.new_tokens / plain_seconds), run.mean_acceptance_length)


def median_run(runs: Sequence[Summary]) -> Summary:
    """Return the run of median speed."""
    by_pace = sorted(runs, key=lambda run: (run.prefill_seconds + run.decode_seconds) / max(1, run.new_tokens))
    return by_pace[len(runs) // 2]
