"""Speed-ups predicted from c(T): worked out by hand, and on recorded runs, where they must meet what was measured."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest

from analysis.cost.curves import SHIPPED, PassCurve, read_curves
from analysis.cost.prediction import drafting_in_passes, measured_speedup, predicted_speedup
from app.store.recordings import FOLDER
from decoding.methods import METHODS
from decoding.trace.file import read_trace
from decoding.types import Step, Timing

CURVE = PassCurve("toy", 8, (1, 4, 8), (10.0, 13.0, 21.0), ())
PROMPTS = ("prime", "rain", "spelling")
RECORDED = [name for name in METHODS if name != "dflash"]  # those of DFlash are from another machine
SPECULATIVE = [name for name in RECORDED if name != "autoregressive"]


def step(fed: int, wrote: int, draft_ms: float = 0.0, total_ms: float = 10.0) -> Step:
    timing = Timing(draft_ms=draft_ms, total_ms=total_ms)
    return Step(1, 1, 0, (0,) * wrote, wrote - 1, fed - 1, fed, timing)


def test_a_step_costs_its_pass_and_its_drafting() -> None:
    steps = [step(4, 3, 2.0), step(8, 1, 4.0)]
    assert drafting_in_passes(steps, [step(1, 1)]) == pytest.approx(0.3)
    assert predicted_speedup(steps, 0.3, CURVE) == pytest.approx(2 / (1.7 + 0.3))
    assert predicted_speedup(steps, 0.3, CURVE, layers=0.5) == pytest.approx(2 / (0.85 + 0.3))
    assert predicted_speedup([step(2, 2)], 0.0, CURVE) == pytest.approx(2 / 1.1)  # between two that were measured
    assert math.isnan(predicted_speedup([step(9, 2)], 0.0, CURVE))
    assert measured_speedup([step(4, 3, 0.0, 20.0)], [step(1, 1)]) == pytest.approx(1.5)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_predictions_meet_what_was_recorded(prompt: str) -> None:
    """SmolLM2's runs, by c(T) of their machine and by what drafting took on the other prompts."""
    curve = next(
        curve
        for _, curve in read_curves(SHIPPED / "cpu-2-cores.json", pytest.fail)
        if (curve.shape, curve.context) == ("smollm2", 128)
    )
    steps = {
        (each, name): read_trace(FOLDER / f"smollm2-{each}-{name}.jsonl.gz").steps[1:]
        for each in PROMPTS
        for name in RECORDED
    }
    others, off = [each for each in PROMPTS if each != prompt], dict[str, float]()
    for name in SPECULATIVE:
        drafting = statistics.mean(
            drafting_in_passes(steps[each, name], steps[each, "autoregressive"]) for each in others
        )
        actual = measured_speedup(steps[prompt, name], steps[prompt, "autoregressive"])
        off[name] = predicted_speedup(steps[prompt, name], drafting, curve) / actual - 1
    assert statistics.median(map(abs, off.values())) < 0.05 and max(map(abs, off.values())) < 0.12, off
    # Where passes cost the same whatever they read, as the papers assume, it would be far off.
    free = replace(curve, milliseconds=(10.0,) * len(curve.rows))
    medusa, plain = steps[prompt, "medusa"], steps[prompt, "autoregressive"]
    assert predicted_speedup(medusa, 0.0, free) > 1.2 * measured_speedup(medusa, plain)
