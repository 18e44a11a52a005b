"""A host that asks a device only once a step must decide what one decides that asks for every number.

Nothing here needs a device: a CPU is taken for one whose numbers are far away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import torch

from decoding import loop, ranking
from decoding.drafting import drafter, writer
from decoding.engine import Engine, Result
from decoding.types import Step
from tests.families import machine
from tests.test_lossless_models import prompt_for
from tests.tiers import choose, crossed, few, sampled, slow
from tests.toys import CASES, title

Params = Mapping[str, Any]
SETTINGS = (
    {"temperature": 0.0, "repetition_penalty": 1.2},
    {"temperature": 0.9, "top_p": 0.95, "seed": 3},
    {"temperature": 1.0, "repetition_penalty": 1.2, "seed": 5},
)


BOTH = {"threshold": 0.03, "expand": 0.05}  # what bounds an EAGLE tree


@cache
def exact(family: str) -> Engine:
    """Make an engine whose numbers are the same in steps of any shape."""
    return machine(family, torch.empty(0, dtype=torch.float64))


@contextmanager
def far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pretend that every number is on a device."""
    with monkeypatch.context() as patch:
        for module in (loop, drafter, writer, ranking):
            patch.setattr(module, "waits", lambda device: True)
        yield


def said(result: Result, rounded: bool = False) -> list[Any]:
    """Return what a run decided, without how long it took and which rows it fed for nothing.

    Confidences are sums in float32, which a host and a device take in different orders: they may be `rounded`
    otherwise.
    """

    def panel(step: Step) -> Any:
        if not rounded or "confidence" not in (step.panel or {}):
            return step.panel
        return {**step.panel, "confidence": pytest.approx(step.panel["confidence"], abs=2e-6)}

    steps = result.trace.steps
    return [(step.emitted, step.path, step.tokens, step.sources, step.q, step.choices, panel(step)) for step in steps]


@sampled
@pytest.mark.parametrize(
    ("method", "params", "family"), few(1, crossed(CASES, ["llama", "mistral", "qwen3"])), ids=title
)
def test_what_is_decided_at_once_is_what_was_decided_one_by_one(
    method: str, params: Params, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draw made for the wrong node, a chain cut too late, a penalty that does not see what was drafted."""
    ours = exact(family)
    for seed, sampling in enumerate(SETTINGS):
        options: dict[str, Any] = {"params": params, "sampling": sampling, "max_new_tokens": 16, "prefill_chunk": 5}
        level = ("full", "light")[seed % 2]
        expected = ours.generate(prompt_for(seed), method, record=level, memory={}, **options)
        with far_away(monkeypatch):
            got = ours.generate(prompt_for(seed), method, record=level, memory={}, **options)
        assert said(got) == said(expected, rounded=True), sampling


@pytest.mark.parametrize(
    ("method", "params"), [("draft_model", {"gamma": 5, "threshold": 0.2}), ("kangaroo", {"eta": 0.03})]
)
def test_a_chain_ends_where_it_would_have_ended(method: str, params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first unsure token, and after an end of text, although the device wrote on."""
    ours = exact("llama")
    end = ours.generate(prompt_for(2), max_new_tokens=30, end_tokens=()).ids[20]
    lengths = set[int]()
    for temperature in (0.0, 1.0):
        options: dict[str, Any] = {"params": params, "end_tokens": (end,), "max_new_tokens": 60, "memory": {}}
        options["sampling"] = {"temperature": temperature, "seed": 2}
        expected = ours.generate(prompt_for(2), method, **options)
        with far_away(monkeypatch):
            got = ours.generate(prompt_for(2), method, **options)
        assert said(got) == said(expected, rounded=True)
        lengths |= {step.drafted for step in got.trace.steps}
        assert all(step.fed > step.drafted for step in got.trace.steps)
    assert len(lengths) > 2


@slow
@pytest.mark.parametrize(
    "bounds",
    choose([{}, {"threshold": 0.04}, {"expand": 0.05}, BOTH], [{}, BOTH]),
    ids=title,
)
def test_a_tree_holds_what_it_would_have_held(bounds: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    """No guess below a bound or after an end of text, although the device grew the tree to its full size."""
    ours = machine("llama", torch.empty(0, dtype=torch.float64))
    form, sizes = {"m": 12, "k": 3, "depth": 3}, set[int]()
    for temperature in (0.0, 1.0):
        options: dict[str, Any] = {"max_new_tokens": 40, "sampling": {"temperature": temperature, "seed": 2}}
        free = ours.generate(prompt_for(2), "eagle3", form, end_tokens=(), **options)
        expanded = {step.tokens[parent] for step in free.trace.steps for parent in step.parents if parent > 0}
        options |= {"params": form | bounds, "end_tokens": (min(expanded - {*free.ids}),)}
        expected = ours.generate(prompt_for(2), "eagle3", **options)
        with far_away(monkeypatch):
            got = ours.generate(prompt_for(2), "eagle3", **options)
        assert said(got) == said(expected, rounded=True) != said(free)
        sizes |= {step.drafted for step in got.trace.steps[1:-2]}
    assert len(sizes) > bool(bounds)
