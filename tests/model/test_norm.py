"""The norm, against transformers' module and both ways of computing it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from decoding.model.pointwise import make_norm

CPU: Any = torch.device("cpu")
OTHER: Any = SimpleNamespace(type="other")  # takes the path of devices with a fused kernel


@pytest.mark.parametrize("device", [CPU, OTHER], ids=["product", "fused"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [0, 1, 5, 64])
def test_same_as_transformers(device: Any, dtype: torch.dtype, rows: int) -> None:
    """Rounding at another place than transformers flips near-ties that its own output does not flip."""
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    torch.manual_seed(rows)
    theirs = LlamaRMSNorm(96, eps=1e-2).to(dtype).requires_grad_(False)
    theirs.weight.copy_(torch.randn(96))
    x = torch.randn(rows, 96).to(dtype)
    got, wanted = make_norm(1e-2, device, dtype)(x) * theirs.weight, theirs(x)
    if dtype is torch.float32:
        torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-6)
    else:  # the order of the sum may turn a value that lies just between two; rounding elsewhere turns a third of them
        assert (got != wanted).sum() <= 0.005 * x.numel()
    assert got.dtype == dtype


def test_float64_stays_float64() -> None:
    """A float64 model is for references: one step in float32 would make it none."""
    x = torch.randn(3, 96, dtype=torch.float64)
    wanted = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(make_norm(1e-6, CPU, torch.float64)(x), wanted, rtol=0.0, atol=1e-14)
