"""The attention kernel of our own in Triton's interpreter, against float64."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from benchmarks.kernel_cases.attention import reference
from decoding.gpu.tree_attention import AttentionPlan, plan, tree_attention
from decoding.model.kernels import choose
from decoding.model.queued_tree import closure_on
from tests.gpu import DEVICE
from tests.model.test_attention import differs
from tests.model.texts import random_tree
from tests.tiers import crossed, sampled, slow

# Largest errors, in shares of one more than the true value.
BOUNDS = {torch.float32: 1e-6, torch.bfloat16: 3.3e-3, torch.float16: 5e-4}
CASES = (
    (1, 0, 1, 2, 16),
    (1, 1, 4, 2, 64),
    (7, 255, 3, 1, 80),
    (20, 257, 1, 1, 128),
    (121, 256, 1, 1, 64),
    (1, 5000, 3, 3, 64),
)
SIZES = (8, 16_384), (3, 16_384), (3, 100), (400, 4096)  # heads of keys, and slots
Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def inputs(
    rows: int, first: int, repeats: int, kv_heads: int, size: int, dtype: torch.dtype, chain: bool = False
) -> Inputs:
    """Make a step after a text, in a cache whose other slots hold nothing that is a number."""
    made = torch.Generator().manual_seed(rows + first)
    data = torch.full((2, first + rows + 300, kv_heads, size), torch.nan)
    data[:, : first + rows] = torch.randn(2, first + rows, kv_heads, size, generator=made)
    key, value = data.to(DEVICE, dtype).transpose(1, 2).unsqueeze(1)
    query = torch.randn(rows, repeats * kv_heads, size, generator=made).to(DEVICE, dtype)
    parents = tuple(range(-1, rows - 1)) if chain else random_tree(rows, rows)
    return query, key, value, torch.tensor([first], device=DEVICE), closure_on(parents, DEVICE)


def error(got: torch.Tensor, given: Inputs) -> float:
    query, key, value, first, seen = given
    wanted = reference(query.double(), key.double(), value.double(), first, seen)
    assert got.shape == wanted.shape and got.dtype == query.dtype
    return float(((got.double() - wanted) / (1.0 + wanted.abs())).nan_to_num(nan=torch.inf).abs().max())


@slow  # a model in the interpreter of kernels
@sampled
@pytest.mark.parametrize(("rows", "first", "repeats", "kv_heads", "size", "dtype"), crossed(CASES, [*BOUNDS]), ids=str)
def test_against_the_definition(
    rows: int, first: int, repeats: int, kv_heads: int, size: int, dtype: torch.dtype
) -> None:
    """A share that is read twice or not at all, or a slot after the rows, changes every number."""
    given = inputs(rows, first, repeats, kv_heads, size, dtype)
    assert error(tree_attention(*given), given) < BOUNDS[dtype]


@pytest.mark.slow  # Triton's interpreter takes long over it
def test_however_a_text_is_divided() -> None:
    """Empty shares, a text shorter than a tile, and tiles of the rows in which a row sees nothing."""
    for first, splits in ((0, 1), (0, 3), (1, 7), (31, 3), (32, 3), (33, 3), (100, 1), (200, 7)):
        for rows, chain in ((5, True), (20, False)):
            given = inputs(rows, first, 1, 1, 16, torch.float32, chain)
            got = tree_attention(*given, AttentionPlan(16, 32, splits, 4, 2))
            assert error(got, given) < BOUNDS[torch.float32], (first, rows, splits)


def test_rows_that_fill_up_see_themselves() -> None:
    """A row without any key would be no number, and a norm of it spreads to no other row, but a NaN check sees it."""
    query, key, value, first, _ = inputs(8, 0, 2, 1, 16, torch.float32)
    got = tree_attention(query, key, value, first, torch.eye(8, dtype=torch.bool, device=DEVICE))
    torch.testing.assert_close(got.view(8, 2, 16), value[0, 0, :8, None].expand(-1, 2, -1))


@slow  # a model in the interpreter of kernels
@pytest.mark.parametrize(("first", "dtype"), crossed([(0,), (191,)], [*BOUNDS]), ids=str)
def test_a_row_depends_on_what_it_sees_alone(first: int, dtype: torch.dtype) -> None:
    """Bit by bit, or methods write other texts in half precision: a token read alone, and as a guess among others."""
    query, key, value, begin, seen = inputs(40, first, 2, 1, 16, dtype, chain=True)
    many = tree_attention(query, key, value, begin, seen)[:5]  # in several tiles
    query, seen = query[:5], seen[:5, :5].contiguous()
    whole = tree_attention(query, key, value, begin, seen)
    assert torch.equal(many, whole)
    for rows in (1, 3):  # fewer guesses after it
        alone = tree_attention(query[:rows], key, value, begin, seen[:rows, :rows].contiguous())
        assert torch.equal(alone, whole[:rows])
    single = torch.ones(1, 1, dtype=torch.bool, device=DEVICE)
    for row in range(5):  # token by token, each after a longer text
        assert torch.equal(tree_attention(query[row : row + 1], key, value, begin + row, single), whole[row : row + 1])


def test_a_device_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """By few rows as by many: how they are divided must not depend on how many they are."""
    monkeypatch.setattr("decoding.gpu.tree_attention._multiprocessors", lambda device: 132)
    splits = [plan(kv_heads, 128, slots, torch.bfloat16, DEVICE).splits for kv_heads, slots in SIZES]
    assert splits == [16, 44, 1, 1], "a program a multiprocessor, but not more than the slots are worth"


@slow  # a model in the interpreter of kernels
def test_a_model_hands_it_its_cache() -> None:
    """Trees after a text in a cache with other layers' strides; the kernel takes no other layout."""
    dtype = torch.bfloat16  # layouts are alike in all
    made = replace(choose(torch.device("cpu"), dtype, 16), tree=tree_attention)
    for rows, prefix in ((1, 70), (9, 3)):
        assert differs(made, rows, prefix, 3, dtype, device=DEVICE) < BOUNDS[dtype]
