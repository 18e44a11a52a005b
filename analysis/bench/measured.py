"""The measurements of one run of a benchmark, and the interface of peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run."""

    ids: tuple[int, ...]
    steps: int
    prefill_seconds: float  # the first step
    decode_seconds: float  # all later steps
    decode_tokens: int  # written by them


# (prompt ids, budget of new tokens, ids that end the text) -> one run
Runner = Callable[[Sequence[int], int, frozenset[int]], MeasuredRun]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another implementation, ready to run."""

    runner: Runner
    precision: str  # of its weights, as "bfloat16" or "Q4_1"
    process: int | None = None  # the id of the one it runs in, if that is not this one
