"""What is kept of lines that a training reads again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from lab.training import state_reader
from lab.training.backbone import Backbone, HiddenStates
from lab.training.batches import Batch
from lab.training.state_reader import StateReader

Make = Callable[..., Backbone]

LAYERS = (0, 1)


@pytest.fixture
def lines_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the lines of every pass of a model."""
    passes, read = list[int](), Backbone.read

    def counted(self: Backbone, batch: Batch, **settings: Any) -> HiddenStates:
        passes.append(len(batch.ids))
        return read(self, batch, **settings)

    monkeypatch.setattr(Backbone, "read", counted)
    return passes


def test_lines_that_come_again_are_read_once(batch: Batch, backbone: Make, lines_read: list[int]) -> None:
    reader, plain = (StateReader(backbone(), LAYERS, remembers=remembers) for remembers in (True, False))
    first, again, whole = reader.read(batch), reader.read(batch.select(slice(None, None, 2))), plain.read(batch)
    assert lines_read == [1] * len(batch.ids) + [len(batch.ids)]
    for one, other, wanted in zip(first, again, whole, strict=True):
        assert torch.equal(one[::2], other)
        assert torch.allclose(one, wanted, atol=1e-5)


def test_the_same_tokens_in_other_rows_are_other_lines(batch: Batch, backbone: Make, lines_read: list[int]) -> None:
    reader = StateReader(backbone(), LAYERS, remembers=True)
    joined = replace(batch, positions=torch.arange(batch.ids.shape[1]).expand_as(batch.ids))
    apart, together = reader.read(batch)[0], reader.read(joined)[0]
    assert len(lines_read) == 2 * len(batch.ids) and not torch.allclose(apart, together, atol=1e-3)


def test_without_room_lines_are_read_again_to_the_same_numbers(
    batch: Batch, backbone: Make, lines_read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_reader, "free_memory", lambda device: 1)
    reader = StateReader(backbone(), LAYERS, remembers=True)
    first, again = reader.read(batch), reader.read(batch)
    assert len(lines_read) == 2 * len(batch.ids)
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
