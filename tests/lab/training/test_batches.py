"""Packed batches: labels, parts, and which tokens see which."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
import torch

from decoding.codec import Codec
from lab.training.backbone import Backbone
from lab.training.batches import IGNORED, Batch, TrainingRow, pack_rows

from .conftest import CHATS, LENGTH

FAMILIES = ["llama", "mistral", "qwen2-mixed", "qwen3", "phi3"]


def rows_of(batch: Batch) -> list[tuple[list[int], list[bool]]]:
    """Return the rows of a batch, padding too."""
    rows = []
    for ids, positions, learnt in zip(batch.ids, batch.positions, batch.learnt, strict=True):
        begins = [*(positions == 0).nonzero().flatten().tolist(), len(ids)]
        rows += [(ids[a:b].tolist(), learnt[a:b].tolist()) for a, b in pairwise(begins)]
    return rows


def test_packing_keeps_every_row_whole(codec: Codec) -> None:
    rng = Random(4)
    sizes = [rng.randint(1, 20) for _ in range(200)]
    rows = [TrainingRow([n] * size, [place > 0 for place in range(size)]) for n, size in enumerate(sizes, start=1)]
    batch = pack_rows(iter(rows), 32, 0)
    packed = [ids for ids, _ in rows_of(batch) if ids[0] != 0]
    assert sorted(packed) == sorted(row.ids for row in rows)
    assert len(batch.ids) <= 1.15 * sum(len(row.ids) for row in rows) / 32


def test_a_fixed_count_of_lines_leaves_out_what_finds_no_room() -> None:
    """Rows that fit into no line, and rows longer than any; a line without rows is padding."""
    sizes = (7, 9, 5, 4, 3, 2)
    rows = [TrainingRow([size] * size, [place > 0 for place in range(size)]) for size in sizes]
    full = pack_rows(rows, 8, 0, count=2)
    assert [ids for ids, _ in rows_of(full) if ids[0] != 0] == [[7] * 7, [5] * 5, [3] * 3]
    wide = pack_rows(rows[2:3], 8, 0, count=3)
    assert wide.ids.tolist() == [[5] * 5 + [0] * 3, [0] * 8, [0] * 8] and wide.learnt.sum() == 4
    assert wide.positions.tolist() == [[0, 1, 2, 3, 4, 0, 1, 2], [*range(8)], [*range(8)]]


def brute_labels(batch: Batch, distances: int, shift: int = 0) -> list[tuple[int, list[int]]]:
    """List each flat position with the tokens after it as long as the answer goes on."""
    expected = []
    for line in range(len(batch.ids)):
        ids, learnt = batch.ids[line].tolist(), batch.learnt[line].tolist()
        for t in range(len(ids)):
            wanted: list[int] = []
            for d in range(1 + shift, distances + 1 + shift):
                going_on = t + d < len(ids) and all(learnt[t + 1 : t + d + 1])
                wanted.append(ids[t + d] if going_on else IGNORED)
            if t + 1 < len(ids) and learnt[t + 1]:
                expected.append((line * len(ids) + t, wanted))
    return expected


def test_labels_are_the_next_tokens_of_the_same_answer(batch: Batch) -> None:
    places, labels = batch.labels(4)
    labelled = list(zip(places.tolist(), labels.tolist(), strict=True))
    assert labelled == brute_labels(batch, 4)
    assert labelled != brute_labels(batch, 4, shift=1), "the control: a wrong shift is told apart"
    assert any(IGNORED in wanted for _, wanted in labelled) and any(IGNORED not in wanted for _, wanted in labelled)
    assert batch.counts(4).tolist() == [sum(w[d] != IGNORED for _, w in labelled) for d in range(4)]
    for place, wanted in zip(places.tolist(), labels.tolist(), strict=True):
        for ahead in range(1, 4):  # what `labels` says of the places behind
            if wanted[ahead] != IGNORED:
                at = places.tolist().index(place) + ahead
                assert places[at] == place + ahead and labels[at, 0] == wanted[ahead]


def test_parts_of_a_batch_are_the_batch(batch: Batch) -> None:
    parts = list(batch.parts(2))
    assert torch.equal(torch.cat([part.ids for part in parts]), batch.ids)
    assert sum(len(part.labels(3)[0]) for part in parts) == len(batch.labels(3)[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_packed_rows_do_not_see_each_other(backbone: Callable[..., Backbone], batch: Batch, family: str) -> None:
    """The same hidden states, alone and packed, in every family; the mask for adapters says the same."""
    model = backbone(family)
    two = next(batch.parts(2))
    packed = model.read(two).final
    seen = two.visible()
    for line in range(2):
        begins = [*(two.positions[line] == 0).nonzero().flatten().tolist(), LENGTH]
        assert len(begins) > 2
        for begin, end in pairwise(begins):
            size = end - begin
            alone = Batch(two.ids[line : line + 1, begin:end], torch.arange(size)[None], torch.zeros(1, size) > 0)
            assert torch.allclose(packed[line, begin:end], model.read(alone).final[0], atol=1e-4)
            assert torch.equal(seen[line, begin:end, begin:end], torch.ones(size, size).tril() > 0)
            assert not seen[line, begin:end, :begin].any() and not seen[line, begin:end, end:].any()
    assert two.visible(3).sum(-1).max() == 3


def test_chats_of_the_fixture_fill_several_lines(batch: Batch) -> None:
    """What the other tests rest on."""
    assert len(CHATS) > len(batch.ids) > 2
