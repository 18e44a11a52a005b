"""Passes that all have the same rows: then half precision writes one text, by every method, on torch's kernels too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import torch

from decoding.engine import Engine
from decoding.errors import ModelError, ParamError
from decoding.model import captured, decoder, graphs
from decoding.model.loading import decoder_of
from tests.families import machine, tiny
from tests.test_lossless_models import prompt_for
from tests.tiers import few, of_methods, sampled
from tests.toys import CASES, title

ROWS, FAMILIES, NEW = 128, ("llama", "qwen3", "phi3-partial"), 20
OPTIONS: dict[str, Any] = {"max_new_tokens": NEW, "end_tokens": ()}


@cache
def coarse(family: str, rows: int) -> Engine:
    """Make an engine in bfloat16 without compiled code, whose rows are the same by themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoder, "suits", lambda shape, layers: False)
        patch.setenv(captured.SAME_ROWS, str(rows) if rows else "")
        return machine(family, torch.empty(0, dtype=torch.bfloat16))


def differing(method: str, params: Any, family: str, rows: int, seeds: Sequence[int], count: int = NEW) -> int:
    """Return texts that part from the autoregressive ones."""
    parted = 0
    for seed in seeds:
        options = {**OPTIONS, "max_new_tokens": count, "prefill_chunk": (512, 5)[seed % 2]}
        got = coarse(family, rows).generate(prompt_for(seed), method, params=params, **options).ids
        parted += got != plain(family, rows, seed, count)
    return parted


@cache
def plain(family: str, rows: int, seed: int, count: int) -> tuple[int, ...]:
    """Return the autoregressive text."""
    return coarse(family, rows).generate(prompt_for(seed), **{**OPTIONS, "max_new_tokens": count}).ids


# Every setting with one family, in turn; test_lossless_models.py has all of them with each.
EACH = [(*case, FAMILIES[at % len(FAMILIES)]) for at, case in enumerate(CASES)]
# What feeds rows of each shape: a window, a chain, a tree of heads and one of features.
KINDS = {"lookahead", "draft_model", "medusa", "kangaroo", "eagle3"}


@sampled
@pytest.mark.parametrize(("method", "params", "family"), of_methods(KINDS, few(1, EACH, more=0)), ids=title)
def test_every_method_writes_the_autoregressive_text(method: str, params: Any, family: str) -> None:
    """Eight bits leave many near-ties, which the rounding of another shape would decide otherwise."""
    assert differing(method, params, family, ROWS, (2,)) == 0


def test_it_is_the_rows_that_do_it() -> None:
    """The negative control: on these models some texts part where rows are as many as a step asks for."""
    methods = [(method, params) for method, params in CASES if method in ("lookahead", "prompt_lookup", "jacobi")]
    assert sum(differing(method, params, "llama", 0, (2,), 40) for method, params in methods) > 0


def test_the_header_says_so() -> None:
    assert coarse("llama", ROWS).model.attention == "matrix products in float64, every pass of 128 rows"


def test_no_step_may_have_more_rows() -> None:
    ours = coarse("llama", 8)
    with pytest.raises(ParamError, match="a draft of 9 tokens exceeds the 8 that a step holds"):
        ours.generate([3, 4, 5], "jacobi", {"n": 8}, **OPTIONS)
    assert len(ours.generate(list(range(3, 40)), "jacobi", {"n": 7}, **OPTIONS).ids) == NEW


@pytest.mark.parametrize("value", ["0", "129", "many", "-1", "٣"])
def test_other_numbers_are_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(captured.SAME_ROWS, value)
    with pytest.raises(ModelError, match="SPECSCOPE_STEP_ROWS must be a whole number from 1 to 128"):
        decoder_of(tiny("llama"))


def test_graphs_are_off_or_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who writes "0" or "false" would measure graphs, and believe to have measured none."""
    monkeypatch.setenv(graphs.VARIABLE, "0")
    with pytest.raises(ModelError, match='SPECSCOPE_GRAPHS must be "off" or left out'):
        decoder_of(tiny("llama"))


def test_a_window_that_hides_something_is_refused() -> None:
    with pytest.raises(ModelError, match="a window of 16 tokens hides some"):
        coarse("mistral", ROWS).generate([3, 4], **OPTIONS)
