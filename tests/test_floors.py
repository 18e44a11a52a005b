"""Tier 4: correct output can hide lost speed, so acceptance has floors and the toys' tokens per step are pinned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from decoding.methods import METHODS
from tests.toys import correlated, counted_text, cycle, engine, hashed

TARGET = hashed(vocabulary=12, seed=11, sharpness=2.0)
COUNTED = counted_text()


@pytest.mark.parametrize("gamma", [1, 4, 7])
def test_a_drafter_equal_to_the_target_is_always_right(gamma: int) -> None:
    """A drafter that reads the wrong text, or at the wrong place, still gives correct output, only slowly."""
    result = engine(TARGET, TARGET).generate((1, 2), "draft_model", params={"gamma": gamma}, max_new_tokens=201)
    assert all(len(step.emitted) == gamma + 1 for step in result.trace.steps[:-1])
    assert result.summary.draft_acceptance_rate == 1.0


@pytest.mark.parametrize("setting", [{"temperature": 1.0}, {"temperature": 0.8, "top_k": 5, "top_p": 0.9}])
def test_equal_distributions_accept_nearly_everything(setting: Mapping[str, Any]) -> None:
    """A q that differs from p by filters, penalty or position shows here first."""
    for penalty in (1.0, 1.3):
        sampling = {**setting, "repetition_penalty": penalty}
        result = engine(TARGET, TARGET).generate((1, 2), "draft_model", sampling=sampling, max_new_tokens=600)
        assert result.summary.draft_acceptance_rate >= 0.98


def test_prompt_lookup_flies_over_repeated_text() -> None:
    """A loop is drafted in full once it has been seen."""
    result = engine(cycle()).generate(tuple(range(7)) * 2, "prompt_lookup", max_new_tokens=200)
    assert result.summary.mean_acceptance_length >= 10.5


PINNED: Mapping[str, tuple[Mapping[str, Any], float]] = {
    # method: parameters, tokens per step
    "autoregressive": ({}, 1.0),
    "jacobi": ({"n": 8}, 1.086),
    "lookahead": ({"W": 5, "N": 4, "G": 5}, 1.832),
    "draft_model": ({"gamma": 4}, 3.953),
    "prompt_lookup": ({}, 1.908),
    "suffix": ({"alpha": 4.0}, 4.184),
    "ngrammys": ({"k": 4, "w": 4}, 2.632),
    "token_recycling": ({}, 2.817),
    "medusa": ({"tree": "cartesian", "sizes": "3,2,2"}, 2.732),
    "kangaroo": ({"gamma": 4}, 2.519),
    "eagle3": ({"m": 12, "k": 3, "depth": 4}, 3.356),
    "dflash": ({"gamma": 4}, 2.646),
    "ouroboros": ({"gamma": 4, "N": 4, "W": 4, "G": 4}, 4.587),
    "rest": ({}, 4.902),
}


@pytest.mark.sampled
@pytest.mark.parametrize("method", METHODS)
def test_tokens_per_step_are_pinned(method: str) -> None:
    """A change that loses acceptance cannot be seen in the text; one that gains it should be noted here."""
    params, pinned = PINNED[method]
    machine = engine(COUNTED, correlated(COUNTED, mix=0.9, order=2))
    steps = tokens = 0
    for seed in range(10):
        sampling = {"temperature": 0.7, "seed": seed}
        options: dict[str, Any] = {"params": params, "sampling": sampling, "max_new_tokens": 100, "record": "off"}
        summary = machine.generate((1, 2, 3, seed), method, **options).summary
        steps, tokens = steps + summary.steps, tokens + summary.new_tokens
    assert tokens / steps == pytest.approx(pinned, rel=0.02)
