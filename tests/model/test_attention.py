"""Attention against its definition in float64."""

from __future__ import annotations

import pytest
import torch

from decoding.model.attention import attend
from tests.model.texts import random_tree

KV_HEADS, SIZE = 2, 8


def defined(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, visible: torch.Tensor
) -> torch.Tensor:  # (T, heads, D), (P, kv_heads, D) twice, (T, P) -> (T, heads, D)
    """Softmax attention head by head; query head h shares the key/value head h mod kv_heads."""
    out = torch.empty_like(query)
    for head in range(query.shape[1]):
        k, v = key[:, head % KV_HEADS], value[:, head % KV_HEADS]
        scores = query[:, head] @ k.T / SIZE**0.5
        out[:, head] = torch.softmax(scores.masked_fill(~visible, -torch.inf), -1) @ v
    return out


def visible_rows(rows: int, prefix: int, window: int | None) -> torch.Tensor:  # (T, P + T)
    """Ancestors and prefix; with a window only what lies less than that far behind the row."""
    parents, depth = random_tree(rows, rows + prefix), list[int]()
    visible = torch.zeros(rows, prefix + rows, dtype=torch.bool)
    visible[:, :prefix] = True
    for row, parent in enumerate(parents):
        depth.append(0 if parent < 0 else depth[parent] + 1)
        if parent >= 0:
            visible[row] |= visible[parent]
        visible[row, prefix + row] = True
    if window is not None:
        place = torch.tensor([*range(prefix), *(prefix + d for d in depth)])
        visible &= place[None] > place[prefix:, None] - window
    return visible


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
@pytest.mark.parametrize("prefix", [0, 1, 17, 300])
@pytest.mark.parametrize("repeats", [1, 2, 4])
@pytest.mark.parametrize("window", [None, 5])
def test_against_the_definition(rows: int, prefix: int, repeats: int, window: int | None) -> None:
    """Heads packed in the wrong order, or a bias row that belongs to another query, change every number."""
    torch.manual_seed(rows + prefix)
    query = torch.randn(rows, repeats * KV_HEADS, SIZE, dtype=torch.float64)
    key, value = torch.randn(2, prefix + rows, KV_HEADS, SIZE, dtype=torch.float64)
    visible = visible_rows(rows, prefix, window)
    bias = torch.zeros(visible.shape).masked_fill(~visible, -torch.inf).repeat_interleave(repeats, 0)
    views = [part.float().transpose(0, 1)[None] for part in (key, value)]
    mixed = attend(query.float(), views[0], views[1], None if visible.all() else bias)
    assert mixed.shape == (rows, repeats * KV_HEADS * SIZE)
    wanted = defined(query, key, value, visible).flatten(1)
    torch.testing.assert_close(mixed.double(), wanted, rtol=0.0, atol=2e-6)


def test_a_row_that_sees_nothing_of_the_first_thousand_keys() -> None:
    """Kernels that go through the keys in blocks must survive a block that is hidden as a whole."""
    torch.manual_seed(0)
    query = torch.randn(2, KV_HEADS, SIZE, dtype=torch.float64)
    key, value = torch.randn(2, 1500, KV_HEADS, SIZE, dtype=torch.float64)
    visible = torch.ones(2, 1500, dtype=torch.bool)
    visible[1, :1499] = False
    bias = torch.zeros(2, 1500).masked_fill(~visible, -torch.inf)
    views = [part.float().transpose(0, 1)[None] for part in (key, value)]
    mixed = attend(query.float(), views[0], views[1], bias)
    torch.testing.assert_close(mixed.double(), defined(query, key, value, visible).flatten(1), rtol=0.0, atol=2e-6)
