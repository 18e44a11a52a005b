"""Tokenizers of strangers: one that would hold everybody else is refused by a process that holds nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from app.models.tokenizer_apart import try_tokenizer
from decoding.codec import Codec
from decoding.errors import ModelError, ParamError
from decoding.loader import load_tokenizer
from tests.tiers import choose, slow

MEMORY = 8 * 2**30
VOCABULARY = {"<unk>": 0, **{chr(code): code for code in range(32, 127)}}


def folder(place: Path, pattern: str | None = None, added: int = 0) -> Path:
    """Make a model's folder with nothing but a tokenizer of letters."""
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<unk>"))
    if pattern is not None:
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    content: dict[str, Any] = json.loads(tokenizer.to_str())
    kind = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    content["added_tokens"] = [{"id": 200 + number, "content": f"<{number}>", **kind} for number in range(added)]
    (place / "tokenizer.json").write_text(json.dumps(content))
    (place / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return place


@slow  # a process of its own
def test_an_honest_one_passes(tmp_path: Path) -> None:
    try_tokenizer(folder(tmp_path, r"\p{L}+|\p{N}{1,3}|\s+", 20), 5, MEMORY, 8_000)


@slow  # a process of its own
@pytest.mark.parametrize("pattern", choose(["(q+)+$", "(?:xy|xy)*z"], ["(q+)+$"]))
def test_an_expression_that_never_ends_is_refused(tmp_path: Path, pattern: str) -> None:
    """It shows in no file: only the texts that it is made for show it."""
    with pytest.raises(ModelError, match="bring"):
        try_tokenizer(folder(tmp_path, pattern), 5, MEMORY, 8_000)


@pytest.mark.slow  # the same watch as over its expressions and its memory
def test_one_that_loads_for_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="takes more than 1 seconds or 8 GB"):
        try_tokenizer(folder(tmp_path, added=300_000), 1, MEMORY, 8_000)


@slow  # a process of its own
def test_one_that_takes_much_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="takes more than"):
        try_tokenizer(folder(tmp_path), 5, 2**20, 8_000)


def test_a_panic_of_compiled_code_is_a_sentence(tmp_path: Path) -> None:
    """It is no Exception, so that a run's thread would end without a word."""
    codec = Codec(load_tokenizer(folder(tmp_path, "(a+)+$")))
    with pytest.raises(ParamError, match="tokenizer fails on this text"):
        codec.encode("a" * 40 + "!")
