"""Weights of eight bits: how they are rounded and multiplied, and that methods write such a model's own text."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from decoding import METHODS, load
from decoding.engine import Engine
from decoding.model.loading import from_transformers
from decoding.model.quantised import FEW, quantised, rounded
from tests.families import machine, tiny
from tests.pretended.test_pretended import PARAMS
from tests.test_load import save
from tests.tiers import crossed, few, sampled

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]


def random(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(sum(size))).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_weights_are_rounded_by_half_a_step_at_most(dtype: torch.dtype) -> None:
    """One scale for all rows, or one that was rounded after the codes, would be coarser."""
    weight = random(40, 24, dtype=dtype) * torch.logspace(-3, 3, 40)[:, None].to(dtype)
    weight[7] = 0.0
    codes, scales = rounded(weight)
    assert codes.dtype == torch.int8 and scales.dtype == dtype and int(codes.abs().max()) == 127
    apart = (weight.double() - codes.double() * scales.double()[:, None]).abs()
    assert (apart <= scales.double()[:, None] * (0.5 + 127 * torch.finfo(dtype).eps)).all()
    assert not codes[7].any() and (scales > 0).all()


@pytest.mark.parametrize("rows", [1, FEW, FEW + 1, 40])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_products_are_those_of_the_rounded_weight(dtype: torch.dtype, biased: bool, rows: int) -> None:
    """Both kernels multiply by the same numbers, so that a guess is judged as it would be read alone."""
    weight, bias, x = random(50, 64, dtype=dtype), random(50, dtype=dtype) if biased else None, random(rows, 64)
    codes, scales = (part.double() for part in rounded(weight))
    x = x.to(dtype)
    got = quantised(weight, bias)(x)
    expected = x.double() @ (codes * scales[:, None]).T + (0.0 if bias is None else bias.double())
    assert got.dtype == dtype and got.shape == (rows, 50)
    assert (got - expected).abs().max() <= 4 * torch.finfo(dtype).eps * expected.abs().max()


@cache
def engine(family: str) -> Engine:
    return machine(family, precision="int8+float32")


SAMPLINGS: list[dict[str, Any]] = [{}, {"temperature": 0.8, "seed": 3}]


@sampled
@pytest.mark.parametrize(
    ("method", "family", "sampling"),
    few(1, crossed(product(METHODS, ["llama-biased", "mistral"]), SAMPLINGS), more=0),
    ids=str,
)
def test_every_method_writes_the_quantised_models_text(method: str, family: str, sampling: dict[str, Any]) -> None:
    """Lossless means: what this model writes token by token, and not what it wrote before it was rounded."""
    for seed in range(2):
        prompt = torch.randint(3, 60, (9,), generator=torch.Generator().manual_seed(seed)).tolist() * 2
        options: dict[str, Any] = {"sampling": sampling, "max_new_tokens": 30, "end_tokens": ()}
        plain = engine(family).generate(prompt, **options)
        got = engine(family).generate(prompt, method, PARAMS.get(method), **options)
        if method not in ("draft_model", "ouroboros", "kangaroo") or not sampling:  # these draw from a drafter too
            assert got.ids == plain.ids
        assert engine(family).rescore(got.trace).violations == 0
        assert got.trace.header.dtype == "int8+float32"


def test_it_is_another_model() -> None:
    """A method must not be checked against the text of the model as it was."""
    whole, small = (from_transformers(tiny("llama"), name) for name in ("float32", "int8+float32"))
    one, other = (model.open(8, 8).read((3, 4, 5), (-1, 0, 1)).logits for model in (whole, small))
    assert 0.0 < (one - other).abs().max() < 0.1 * one.abs().max()


def test_a_model_is_loaded_so_by_its_dtype(tmp_path: Path) -> None:
    """Its card says what its weights take, which the share of the bandwidth is computed from."""
    folder = save(tmp_path)
    plain, small = (load(folder, draft=folder, device="cpu", dtype=name) for name in ("float32", "int8+float32"))
    assert small.model.precision == "int8+float32" and small.model.dtype == torch.float32
    assert small.draft is not None and small.draft.precision == "int8+float32"
    assert load(folder, device="cpu", dtype="int8").model.precision in ("int8+float32", "int8+bfloat16")
    assert small.model.card.hash == plain.model.card.hash, "heads and adapters of the model fit it"
    before, after = plain.model.card.pass_bytes, small.model.card.pass_bytes
    assert before is not None and after is not None and before / 4 < after < before / 3
    norms = 7 * 64 * 4
    rows = 67 + 3 * (64 + 2 * 32 + 64 + 2 * 48 + 64)
    assert after == norms + (before - norms) // 4 + 4 * rows
