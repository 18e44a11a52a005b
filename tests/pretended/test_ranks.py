"""One of two ranks on a pretended CUDA device: its share of a tree is read and judged there, with one wait a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from decoding.ranks import Ranks
from tests.pretended.device import pretended
from tests.pretended.test_pretended import GREEDY, PASSES, SAMPLED, made_of, waits
from tests.tiers import slow

pytestmark = pytest.mark.pretended


class Echo(Ranks):
    """The other rank says what this one says."""

    def gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """Return the same numbers from both."""
        return [[*numbers], [*numbers]]


@pytest.mark.parametrize(
    ("method", "sampling", "most"),
    [
        ("lookahead", GREEDY, 1),
        pytest.param("lookahead", {**SAMPLED, "repetition_penalty": 1.2}, 1, marks=slow),
        ("ngrammys", SAMPLED, 1),
        pytest.param("ouroboros", GREEDY, PASSES["ouroboros"], marks=slow),
        ("draft_model", GREEDY, 2),  # its tokens must be known before they are shared out
    ],
)
def test_a_rank_waits_once(method: str, sampling: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A share on the wrong device, or a wait for each choice, would cost more than the other rank spares."""
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "pretended")
    made = made_of("mistral-full", torch.bfloat16)
    with pretended(monkeypatch) as device:
        assert 1 <= waits(device, made.engine(), method, sampling, ranks=Echo(0, 2, "cuda", "nccl")) <= most
