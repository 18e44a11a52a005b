"""What parts are made of: the marks in front of the tokens of n-gram tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from decoding import load
from decoding.codec import Codec
from decoding.parts.makers import head_of
from tests import families

WORDS = ("<pad>", "<s>", "</s>", "<user>", "<bot>", *(f"w{index}" for index in range(62)))


def tokenizer(around: str = "$A", **special: str) -> PreTrainedTokenizerFast:
    """Make a tokenizer of words that puts marks around a text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    marks = [(word, WORDS.index(word)) for word in WORDS[:5]]
    made.post_processor = processors.TemplateProcessing(single=around, special_tokens=marks)
    return PreTrainedTokenizerFast(tokenizer_object=made, **special)


CASES: tuple[tuple[dict[str, Any], list[int]], ...] = (
    ({"around": "<s> <user> $A <bot>", "bos_token": "<s>"}, [1, 3, 4]),
    ({"around": "<s> $A", "bos_token": "<s>"}, [1]),
    ({"around": "<s> $A </s>", "bos_token": "<s>", "eos_token": "</s>"}, [1]),
    ({"bos_token": "<s>"}, [1]),
    ({"around": "$A </s>", "eos_token": "</s>"}, []),
    ({}, []),
)


@pytest.mark.parametrize(("settings", "marks"), CASES, ids=str)
def test_tokens_are_read_behind_the_marks_of_a_text(settings: dict[str, Any], marks: list[int]) -> None:
    """As the model was trained: the marks around a text, or at least its begin, but no end of text."""
    assert head_of(Codec(tokenizer(**settings)), 67) == marks


def test_marks_that_the_model_does_not_know_are_left_out() -> None:
    """Tokenizers have tokens that were added later."""
    codec = Codec(tokenizer("<s> <user> $A <bot>", bos_token="<s>"))
    assert head_of(codec, 4) == [1, 3] and head_of(codec, 1) == []
    assert head_of(Codec(tokenizer(" ".join(["<user>"] * 40) + " $A")), 67) == [3] * 16
    assert head_of(Codec(), 67) == []


def test_a_loaded_engine_says_what_stood_in_front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way from a tokenizer's file to the name in the record."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    families.tiny("llama").save_pretrained(tmp_path / "model")
    tokenizer("<s> <user> $A <bot>", bos_token="<s>", eos_token="</s>").save_pretrained(tmp_path / "model")
    engine = load(str(tmp_path / "model"), device="cpu", dtype="float32")
    assert engine.part("tables").about.endswith(" behind 1 3 4")
    assert [path.name[-13:] for path in (tmp_path / "cache" / "specscope").iterdir()] == ["1.3.4.safetensors"[-13:]]
