"""Predicts a method's speed-up, from c(T) and from its steps on other prompts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from decoding.types import Step

from .curves import PassCurve


def predicted_speedup(steps: Sequence[Step], drafting: float, curve: PassCurve, layers: float = 1.0) -> float:
    """Return the speed-up over autoregressive decoding of steps that read and write like these.

    `drafting` is the time of a step's drafting, in passes over one token; `layers` is the share of the model's layers
    that a pass runs if drafting has run the others. NaN if a pass is beyond what was measured.
    """
    passes = curve.times(np.array([step.fed for step in steps])) / curve.milliseconds[0]
    return tokens_per_step(steps) / (layers * float(passes.mean()) + drafting)


def drafting_in_passes(steps: Sequence[Step], plain: Sequence[Step]) -> float:
    """Return the drafting time of a step, in steps of autoregressive decoding on the same prompts."""
    return _mean([step.timing.draft_ms for step in steps]) / _mean([step.timing.total_ms for step in plain])


def measured_speedup(steps: Sequence[Step], plain: Sequence[Step]) -> float:
    """Return the speed of steps over that of autoregressive ones."""
    return _speed(steps) / _speed(plain)


def tokens_per_step(steps: Sequence[Step]) -> float:
    """Return the tokens that a step writes."""
    return _mean([len(step.emitted) for step in steps])


def _speed(steps: Sequence[Step]) -> float:
    return tokens_per_step(steps) / _mean([step.timing.total_ms for step in steps])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
