"""Products with packed weights."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from decoding.model import linear
from decoding.native import products


@pytest.mark.parametrize("way", ["compiled", "packed", "plain"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.float16])
@pytest.mark.parametrize("rows", [0, 1, 2, 8, 33])
@pytest.mark.parametrize("biased", [False, True])
def test_same_as_torch(way: str, dtype: torch.dtype, rows: int, biased: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packed weight that is transposed, or a bias that is dropped, would pass every check of shapes."""
    if way != "compiled":
        monkeypatch.setattr(products, "library", lambda: None)
    if way == "plain":
        monkeypatch.setattr(linear, "_packs", lambda dtype: False)
    torch.manual_seed(0)
    weight, x = torch.randn(48, 24).to(dtype), torch.randn(rows, 24).to(dtype)
    bias = torch.randn(48).to(dtype) if biased else None
    with torch.inference_mode():
        got, wanted = linear.linear(weight, bias)(x), functional.linear(x, weight, bias)
    exact = dtype is torch.bfloat16  # rounding hides the order of the sum
    torch.testing.assert_close(got, wanted, rtol=0.0, atol=0.01 if exact else 1e-5 if dtype != torch.float16 else 0.01)


def test_a_build_without_packing_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds for other processors lack these operations; asking them must not end the program."""

    def refuse(weight: torch.Tensor, bias: torch.Tensor | None) -> linear.Linear:
        raise AttributeError("no such operation")

    monkeypatch.setattr(products, "library", lambda: None)
    monkeypatch.setattr(linear, "_packed", refuse)
    linear._packs.cache_clear()
    x = torch.randn(2, 16)
    assert torch.equal(linear.linear(torch.eye(16), None)(x), x)
    linear._packs.cache_clear()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int8])
def test_only_dtypes_that_gain_are_packed(dtype: torch.dtype) -> None:
    """float64 has no packed product: choosing one would raise in the middle of the first run."""
    assert not linear._packs(dtype)
