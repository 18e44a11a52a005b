"""Computes the metrics of a run, under vLLM's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import accumulate

from ..types import Step, Summary, Timing

WHOLE = ("length", "end_of_text", "stop")  # the ends of a run that was not cut short


def summarise(steps: Sequence[Step], finish: str, text: str) -> Summary:
    """Compute the summary of a run."""
    new_tokens = sum(len(step.emitted) for step in steps)
    drafted = sum(step.drafted for step in steps)
    later = steps[1:]
    seconds = sum(step.timing.total_ms for step in later) / 1000
    return Summary(
        finish=finish,
        text=text,
        new_tokens=new_tokens,
        steps=len(steps),
        mean_acceptance_length=compression_rate(written(steps)),
        draft_acceptance_rate=sum(step.accepted for step in steps) / drafted if drafted else None,
        acceptance_histogram=histogram(steps),
        fed_per_token=sum(step.fed for step in steps) / new_tokens if new_tokens else 0.0,
        prefill_seconds=steps[0].timing.total_ms / 1000 if steps else 0.0,
        decode_seconds=seconds,
        tokens_per_second=sum(len(step.emitted) for step in later) / seconds if seconds > 0 else None,
        timing=add(step.timing for step in later),
    )


def credible_speedup(speedup: float | None, tokens_per_step: float) -> float | None:
    """Return the speedup; None for a measuring error: one above the tokens per step, to the two digits shown.

    A step does all the work of an autoregressive one, so it cannot take less time.
    """
    fine = speedup is not None and speedup > 0 and round(speedup, 2) <= round(tokens_per_step, 2)
    return speedup if fine else None


def may_be_cached(weights: int, cache: int) -> bool:
    """Return True if a processor's cache may hold half the weights of a pass: then memory does not limit it."""
    return weights <= 2 * cache


def histogram(steps: Sequence[Step]) -> tuple[int, ...]:
    """Count, in entry j, the steps that accepted exactly j guesses."""
    counts = Counter(step.accepted for step in steps)
    return tuple(counts[guesses] for guesses in range(max(counts, default=-1) + 1))


def survival(counts: Sequence[int]) -> tuple[float, ...]:
    """Return the per-position acceptance rate: entry i is the share of steps that accepted more than i guesses."""
    steps = sum(counts)
    return tuple((steps - rejected) / steps for rejected in accumulate(counts[:-1]))


def written(steps: Iterable[Step]) -> Counter[int]:
    """Return the list S of the Kangaroo paper as counts: how many passes of the target wrote n tokens."""
    return Counter(len(step.emitted) for step in steps)


def compression_rate(counts: Mapping[int, int]) -> float:
    """Return CR of the Kangaroo paper, equation 1: the tokens written per pass, or mean acceptance length."""
    return sum(tokens * passes for tokens, passes in counts.items()) / (sum(counts.values()) or 1)


def consistent_acceptance(counts: Mapping[int, int], w: int) -> float:
    """Return CTAR(w) of the Kangaroo paper, equation 2: the share of passes that wrote more than w tokens.

    It estimates the probability that w consecutive guesses are right; a last step that was cut counts what it wrote.
    """
    return sum(passes for tokens, passes in counts.items() if tokens > w) / (sum(counts.values()) or 1)


def expected_tokens(guesses: int, alpha: float) -> float:
    """Return the tokens a step writes on average, by Leviathan's equation 1: (1 - alpha^(g+1)) / (1 - alpha)."""
    return sum(alpha**depth for depth in range(guesses + 1))


def add(timings: Iterable[Timing]) -> Timing:
    """Sum timings."""
    columns = zip(*([getattr(t, f.name) for f in fields(Timing)] for t in timings), strict=True)
    return Timing(*(round(sum(column), 4) for column in columns))
