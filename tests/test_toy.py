"""The toy: small, quick, and the same on every machine."""

from __future__ import annotations

import pytest
import torch

from analysis.prompts.toy import TASKS
from decoding import METHODS, load
from decoding.toy import PROMPT

SMALL = {"lookahead": {"W": 5, "N": 4, "G": 5}}


@pytest.mark.parametrize("text", ["Grüße, 世界! \U0001f40b", "\t tabs\n\nand   spaces ", "\x00\x1b[31m\u202e", "xyz"])
def test_any_text_goes_through_the_tokenizer_and_comes_back(text: str) -> None:
    """A tokenizer without all 256 bytes loses what its training text did not contain."""
    engine = load("toy")
    ids = engine.encode(text)
    assert engine.codec.decode(ids) == text
    assert "".join(map(engine.codec.piece, engine.encode("the tide"))) == "the tide"


@pytest.mark.parametrize("prompt", ["世界", "zzz qqq", "\x07", PROMPT])
def test_prompts_that_the_text_does_not_hold_still_work(prompt: str) -> None:
    """A model without back-off has nothing to say after an ending that it never saw."""
    engine = load("toy")
    result = engine.generate(prompt, max_new_tokens=20)
    assert result.ids
    logits = engine.model.open(8, 8).read(engine.encode(prompt)[-1:], (-1,)).logits
    assert torch.isfinite(logits).all()


@pytest.mark.slow
def test_guesses_are_sometimes_right_and_sometimes_wrong() -> None:
    """A toy on which a method never or always succeeds shows nothing."""
    engine = load("toy")
    chats = [[{"role": "user", "content": turn}] for task in TASKS for turn in task.turns]
    texts = [engine.generate(chat, max_new_tokens=48).ids for chat in chats]
    for method in METHODS:
        if engine.lacks(method):
            continue
        lengths = set()
        for chat, ids in zip(chats, texts, strict=True):
            result = engine.generate(chat, method, params=SMALL.get(method), max_new_tokens=48, record="off")
            assert result.ids == ids
            lengths |= {step.accepted for step in result.trace.steps}
        assert lengths == {0} if method == "autoregressive" else {0, 1, 2} <= lengths, method


def test_the_toy_is_the_same_at_every_start() -> None:
    """Training the tokenizer anew must not change ids: a trace from yesterday could not be rescored."""
    from decoding.toy import _parts

    first = load("toy")
    _parts.cache_clear()
    second = load("toy")
    assert first.model is not second.model
    assert first.model.card == second.model.card
    assert first.codec.tokenizer.get_vocab() == second.codec.tokenizer.get_vocab()
    assert first.model.card.hash != first.draft.card.hash  # type: ignore[union-attr]


def test_texts_end() -> None:
    """Without the mark after every document no run would ever end by itself."""
    engine = load("toy")
    result = engine.generate([{"role": "user", "content": "What does the library lend?"}])
    assert result.summary.finish == "end_of_text"
    assert result.text == "The library lends books, it lends umbrellas, and it lends time."


def test_a_full_context_is_held() -> None:
    """The context that the card promises must be reachable to its last token."""
    engine = load("toy")
    assert engine.model.card.context == 4096
    ids = (engine.encode("the tide came, and ") * 1000)[:4090]
    assert len(engine.generate(ids, "prompt_lookup", max_new_tokens=6, end_tokens=()).ids) == 6
