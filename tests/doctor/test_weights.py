"""Weights that were rounded, lost or never trained are told from those that were."""

from __future__ import annotations

import re

import pytest
import torch

from analysis.doctor.rest import check_lost, check_rounding, check_spoilt

from .breaks import clipped, empty_rows, flushed, rounded


def test_every_matrix_that_is_too_coarse_is_told_with_its_error() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = {f"{bits} bits": torch.randn(64, 256, generator=generator) for bits in (2, 3, 5)}
    for bits in (2, 3, 5):
        rounded(bits)({}, some := {f"{bits} bits": weights[f"{bits} bits"]})
        weights |= some
    rough = check_rounding({**weights, "whole": torch.randn(64, 256, generator=generator)})
    told = dict(re.findall(r"(\d bits) ([\d.]+)%", rough.sentence))
    assert not rough.fine and told.keys() == {"2 bits", "3 bits"}
    assert float(told["2 bits"]) > float(told["3 bits"]) > 15
    fine = check_rounding({"5 bits": weights["5 bits"]})
    assert fine.fine and re.search(r"5 bits \d\.\d%$", fine.sentence)


def trained(rows: int = 64, columns: int = 256) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_numbers_that_a_format_could_not_hold_are_told(dtype: torch.dtype) -> None:
    """A drafter with them was called healthy, or given the remedy that hid most of them."""
    weights = {"q": trained().to(dtype), "k": trained().to(dtype)}
    assert check_lost(weights).fine
    flushed(0.5)({}, small := {"q.weight": weights["q"]})
    lost = check_lost({**weights, **small})
    assert not lost.fine and "50% of the numbers of q.weight are zeros" in lost.sentence
    lost = check_lost({"q": clipped(weights["q"])})
    assert not lost.fine and "50% of the numbers of q are as large as the largest" in lost.sentence


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_rounded_numbers_are_not_taken_for_lost_ones(bits: int) -> None:
    rounded(bits)({}, weights := {"q": trained()})
    assert check_lost(weights).fine


def test_a_head_of_zeros_is_told_and_tokens_that_were_never_met_are_not() -> None:
    zeros = empty_rows(1 / 8)(trained())
    assert not check_spoilt({"layers.0.self_attn.q_proj.weight": zeros}).fine
    assert check_spoilt({"lm_head.weight": zeros, "embed_tokens.weight": zeros * 2}).fine
