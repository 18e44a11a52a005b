"""Sources of batches: files, and the embedded family's language."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from decoding.codec import Codec
from decoding.errors import ModelError, ParamError
from lab.pocket.sources import LanguageSource, language_prompts
from lab.training.conversations import Conversation
from lab.training.encoding import ChatEncoder
from lab.training.sources import FileSource

from .conftest import LENGTH, counting
from .test_encoding import with_template


def quiet(what: str, share: float) -> None:
    """Ignore all progress."""


def source(codec: Codec, seed: int = 1, lines: int = 2, vocabulary: int = 300) -> FileSource:
    chats = [counting(n % 10, turns=1 + n % 3, system=str(n)) for n in range(40)]
    encoder = ChatEncoder(codec, LENGTH)
    return FileSource(
        chats, encoder, codec.tokenizer, vocabulary, lines=lines, length=LENGTH, seed=seed, progress=quiet
    )


def test_an_epoch_shows_every_line_once_in_an_order_of_the_seed(codec: Codec) -> None:
    one, again, other = source(codec), source(codec), source(codec, seed=2)
    steps = one.steps(1.0)
    drawn = [one.draw(step) for step in range(steps)]
    lines = [tuple(line) for batch in drawn for line in batch.ids.tolist()]
    assert len(set(lines)) >= len(lines) - 1, "at most one line of the next epoch fills the last batch"
    assert all(torch.equal(again.draw(step).ids, drawn[step].ids) for step in reversed(range(steps)))
    assert [other.draw(step).ids.tolist() for step in range(steps)] != [batch.ids.tolist() for batch in drawn]
    assert one.about == again.about and drawn[0].ids.dtype == torch.long
    assert {tuple(line) for batch in one.held_out for line in batch.ids.tolist()}.isdisjoint(lines)


def test_data_that_teaches_nothing_and_foreign_tokenizers_are_refused(codec: Codec) -> None:
    asked = [Conversation((f"count {n}",)) for n in range(9)]
    with pytest.raises(ParamError, match="hold no answers.*--self-distill"):
        FileSource(asked, ChatEncoder(codec, 40), codec.tokenizer, 300, lines=1, length=40, seed=1, progress=quiet)
    silent = with_template(codec, None)
    twice = [counting(n, turns=2) for n in range(9)]
    with pytest.raises(ParamError, match=r"no chat template.*\(it begins 'count \d'\)"):
        FileSource(twice, ChatEncoder(silent, 40), codec.tokenizer, 300, lines=1, length=40, seed=1, progress=quiet)
    with pytest.raises(ModelError, match="do not belong together"):
        source(codec, vocabulary=20)


@pytest.mark.slow
def test_the_language_is_drawn_by_seed_and_step(codec: Codec) -> None:
    one, again = (LanguageSource(codec.tokenizer, 300, lines=2, length=700, seed=3) for _ in range(2))
    batch = one.draw(5)
    assert torch.equal(batch.ids, again.draw(5).ids) and not torch.equal(batch.ids, one.draw(6).ids)
    assert batch.learnt.any() and not batch.learnt[batch.positions == 0].any()
    assert one.held_out and one.held_out[0].learnt.any()
    assert language_prompts(3, 1) == language_prompts(3, 1) != language_prompts(3, 2)
    foreign: Any = type("Tokenizer", (), {"get_vocab": lambda self: {}})()
    with pytest.raises(ParamError, match="only a model of the embedded family"):
        LanguageSource(foreign, 300, lines=1, length=700, seed=3)
