"""Tier 2: the oracle accepts what the engine wrote and finds every token that the target would not have written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.model.table import TableModel
from decoding.types import Trace
from tests.families import machine as with_parts
from tests.tiers import few, sampled
from tests.toys import CASES, engine, hashed, prompt_for, title, toy

SETTINGS: tuple[Mapping[str, Any], ...] = (
    {},
    {"repetition_penalty": 1.3},
    {"temperature": 1.0},
    {"temperature": 0.8, "top_k": 3, "top_p": 0.9, "repetition_penalty": 1.2},
)


@sampled
@pytest.mark.parametrize(("method", "params"), few(1, CASES), ids=title)
def test_real_runs_pass(method: str, params: Mapping[str, Any]) -> None:
    """An oracle that cries wolf is switched off."""
    for seed in range(8):
        machine = engine(toy(seed, seed))
        sampling = {**SETTINGS[seed % len(SETTINGS)], "seed": seed}
        prompt = prompt_for(machine.model, seed)
        result = machine.generate(prompt, method, params=params, sampling=sampling, max_new_tokens=30)
        got = machine.rescore(result.trace)
        assert (got.checked, got.exact, got.near_ties, got.violations) == (30, 30, 0, 0)
        assert got.places == () and 0 < got.noise <= 1e-4


def tampered(trace: Trace, position: int, token: int) -> Trace:
    """Return the trace with one of its new tokens replaced."""
    steps, before = list(trace.steps), 0
    for i, step in enumerate(steps):
        if before <= position < before + len(step.emitted):
            emitted = list(step.emitted)
            emitted[position - before] = token
            steps[i] = replace(step, emitted=tuple(emitted))
        before += len(step.emitted)
    return replace(trace, steps=tuple(steps))


@pytest.mark.parametrize("position", [0, 1, 17, 29])
def test_a_tampered_token_is_found(position: int) -> None:
    """The place and the margin must be those of the wrong token, not of its neighbours."""
    machine = engine(hashed(vocabulary=12, seed=8))
    prompt = (3, 1, 4)
    trace = machine.generate(prompt, "prompt_lookup", max_new_tokens=30).trace
    before = [*prompt, *trace.ids[:position]]
    row = machine.model.logits(before)
    wrong = int(row.argmin())
    got = machine.rescore(tampered(trace, position, wrong))
    place = got.places[0]
    assert (place.position, place.token, place.choice) == (position, wrong, trace.ids[position])
    assert place.margin == pytest.approx(float(row.max() - row.min()), abs=1e-6)
    assert got.violations >= 1 and got.exact + got.violations + got.near_ties == got.checked


def test_an_impossible_token_is_found_in_a_sampled_run() -> None:
    """A sampled run can hold many tokens at a place, but none that the filters have removed."""
    machine, sampling = engine(hashed(vocabulary=12, seed=8)), {"temperature": 1.0, "top_k": 3}
    trace = machine.generate((3, 1, 4), sampling=sampling, max_new_tokens=20).trace
    row = machine.model.logits([3, 1, 4, *trace.ids[:19]])
    ordered = row.argsort(descending=True).tolist()
    assert machine.rescore(tampered(trace, 19, ordered[2])).violations == 0
    got = machine.rescore(tampered(trace, 19, ordered[3]))
    assert [place.position for place in got.places] == [19] and got.violations == 1
    assert got.places[0].margin == pytest.approx(float(row[ordered[2]] - row[ordered[3]]), abs=1e-6)


def test_a_path_dependent_penalty_is_checked() -> None:
    """A run written without the penalty that its header claims must not pass."""
    machine = engine(hashed(vocabulary=12, seed=8))
    trace = machine.generate((3, 1, 4), max_new_tokens=30).trace
    claimed = replace(trace, header=replace(trace.header, sampling={"repetition_penalty": 5.0}))
    assert machine.rescore(claimed).violations > 0


def close(gap: float) -> Engine:
    """Make a model whose two likeliest tokens are `gap` apart everywhere."""
    row = torch.tensor([1.0, 1.0 - gap, 0.0], dtype=torch.float64)
    return engine(TableModel(lambda key: row, 1, 3))


@pytest.mark.parametrize(("gap", "near", "wrong"), [(1e-6, 1, 0), (1e-3, 0, 1)])
def test_near_ties_are_told_from_violations(gap: float, near: int, wrong: int) -> None:
    """Rounding decides between tokens that are closer than the noise: that is no mistake, and nothing else is."""
    machine = close(gap)
    got = machine.rescore(tampered(machine.generate((2, 2), max_new_tokens=10).trace, 4, 1))
    assert (got.exact, got.near_ties, got.violations) == (9, near, wrong)
    assert got.places[0].margin == pytest.approx(gap, abs=1e-6)


def test_another_models_trace_is_refused() -> None:
    """Token ids out of range would crash the forward pass."""
    trace = engine(hashed(vocabulary=12)).generate((11, 3), max_new_tokens=5).trace
    with pytest.raises(ParamError, match="load the model that its header names"):
        engine(hashed(vocabulary=5)).rescore(trace)


def test_a_run_without_tokens_has_nothing_to_check() -> None:
    """A run cancelled before its first step must not crash the oracle."""
    machine = engine(hashed())
    run = machine.decode((1, 2))
    run.cancel()
    assert list(run) == [] and machine.rescore(run.trace).checked == 0


@sampled
@pytest.mark.parametrize(("method", "params"), few(1, CASES), ids=title)
def test_roundings_of_bf16_are_no_violations(method: str, params: Mapping[str, Any]) -> None:
    """A probe that happens to agree to the last bit must not make the next rounding a violation."""
    machine = with_parts("llama", torch.empty(0, dtype=torch.bfloat16))
    result = machine.generate(range(20), method, params=params, max_new_tokens=80, end_tokens=())
    checked = machine.rescore(result.trace)
    assert (checked.checked, checked.violations) == (80, 0)
    assert checked.noise < 0.2
