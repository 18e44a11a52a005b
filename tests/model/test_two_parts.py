"""Whole runs with attention in two parts, as on CUDA, against runs with one call: in float64 their texts are equal."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from decoding.engine import Engine
from decoding.methods import METHODS
from decoding.model import attention, kernels
from tests.families import machine
from tests.tiers import crossed, of_methods, slow

PARAMS: dict[str, dict[str, Any]] = {"lookahead": {"W": 5, "N": 4, "G": 5}}
# Every layer sees all, none repeats heads; some layers have windows; many query heads share one of keys.
FAMILIES = ("mistral-full", "qwen2-mixed", "llama-wide-heads")


def made(family: str) -> Engine:
    """Make an engine whose drafter is often wrong, so that steps of all shapes are rolled back."""
    return machine(family, torch.empty(0, dtype=torch.float64), noise=0.01)


KINDS = {"lookahead", "kangaroo", "eagle3"}  # a window, layers read apart, and trees of features


@slow
@pytest.mark.parametrize(("method", "family"), of_methods(KINDS, crossed([(method,) for method in METHODS], FAMILIES)))
def test_texts_are_those_of_one_call(method: str, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt, a tree or a commit that crosses a block's border reads keys of another place, or none."""
    monkeypatch.setattr(attention, "BLOCK", 8)  # borders come often in a short text
    prompt = torch.randint(0, 60, (21,), generator=torch.Generator().manual_seed(1)).tolist()
    runs = []
    for name in ("masked", "plain"):
        monkeypatch.setenv(kernels.VARIABLE, name)
        engine, ids = made(family), list[tuple[int, ...]]()
        for temperature in (0.0, 1.0):
            options: dict[str, Any] = {"max_new_tokens": 40, "end_tokens": (), "prefill_chunk": 9}
            sampling = {"temperature": temperature, "seed": 3}
            result = engine.generate(prompt, method, PARAMS.get(method), sampling, **options)
            ids.append(result.ids)
        assert ("on the prefix" in result.trace.header.attention) == (name == "plain")
        runs.append(ids)
    assert runs[0] == runs[1]


def test_a_session_used_to_its_last_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tail's slots reach after the last token that may be stored."""
    monkeypatch.setenv(kernels.VARIABLE, "plain")
    model = made("mistral-full").model
    answers = []
    for capacity in (300, 20):
        session = model.open(capacity, 4)
        session.reset(20)
        for start in range(0, 20, 4):
            session.read(range(start, start + 4), (-1, 0, 1, 2))
            session.commit(range(4))
        answers.append(session.read([5, 6, 7, 8], (-1, 0, 0, 1)).logits)
    assert torch.equal(*answers)


def test_what_a_failed_run_stored_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tail's mask hides slots after the text by adding to their scores: to NaN nothing can be added."""
    monkeypatch.setenv(kernels.VARIABLE, "plain")
    model = made("mistral-full").model
    session = model.open(300, 4)
    session.reset(4)
    expected = session.read([1, 2, 3, 4], (-1, 0, 0, 1)).logits
    with torch.inference_mode():
        session.cache.data.fill_(torch.nan)  # type: ignore[attr-defined]
    session.reset(4)
    assert torch.equal(session.read([1, 2, 3, 4], (-1, 0, 0, 1)).logits, expected)
