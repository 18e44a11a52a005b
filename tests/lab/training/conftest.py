"""A tokenizer, conversations and tiny models to train heads and adapters on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decoding.codec import Codec
from lab.pocket.tokenizer import train_tokenizer
from lab.training.backbone import Backbone
from lab.training.batches import Batch, pack_rows
from lab.training.conversations import Conversation
from lab.training.encoding import ChatEncoder
from tests.families import tiny

LENGTH = 48


def counting(first: int, turns: int = 1, system: str = "") -> Conversation:
    """Make questions whose answers count on: regular, so that a few steps learn much."""
    asked = tuple(f"count {first + turn}" for turn in range(turns))
    answers = tuple(" ".join(str((first + turn + i) % 10) for i in range(5)) for turn in range(turns))
    return Conversation(asked, answers, system)


CHATS = [counting(first % 7, turns=1 + first % 2, system="count" if first % 3 == 0 else "") for first in range(12)]


@pytest.fixture(scope="session")
def codec() -> Codec:
    tokenizer = train_tokenizer(["count 1 2 3 4 5 6 7 8 9 0"], size=300)
    return Codec(tokenizer, [tokenizer.eos_token_id])


@pytest.fixture
def batch(codec: Codec) -> Batch:
    """Return all conversations in a few lines, as a model takes them."""
    encoder = ChatEncoder(codec, LENGTH)
    packed = pack_rows([row for chat in CHATS for row in encoder.rows(chat)], LENGTH, 0)
    return packed.select(slice(None))


@pytest.fixture
def backbone() -> Callable[..., Backbone]:
    """Make a tiny model of the tokenizer's size; equal seeds give equal weights."""

    def make(family: str = "llama", **changes: Any) -> Backbone:
        return Backbone(tiny(family, vocab_size=300, **changes), family)

    return make
