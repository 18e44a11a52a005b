"""Engines by name: tokenizers, ends of text, and pairs that must not be mixed up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from decoding import ModelError, load
from decoding.loader import load_tokenizer
from decoding.model.resized import Resized
from decoding.model.table import TableModel
from tests import families

WORDS = ["<pad>", "<s>", "</s>", *(f"w{index}" for index in range(62))]  # two fewer than the models' rows


def save(folder: Path, words: list[str] | None = WORDS, **changes: Any) -> str:
    """Return a tiny model in a folder, with a tokenizer of these words."""
    families.tiny("llama", **changes).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if words is not None:
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast

        tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<pad>"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=words[2]).save_pretrained(folder)
    return str(folder)


def test_a_folder_is_loaded(tmp_path: Path) -> None:
    """The engine's tokens must be those of transformers on the same folder."""
    engine = load(save(tmp_path), device="cpu", dtype="float32")
    assert engine.encode("w3 w4") == [6, 7]
    ours = engine.generate("w3 w4 w5", max_new_tokens=12, end_tokens=()).ids
    inputs = torch.tensor([[6, 7, 8]])
    theirs = families.tiny("llama").generate(inputs, do_sample=False, min_new_tokens=12, max_new_tokens=12)
    assert list(ours)[:5] == theirs[0, 3:8].tolist()
    assert engine.codec.end_tokens == {2}


def test_a_folder_without_tokenizer_reads_ids(tmp_path: Path) -> None:
    """Raw checkpoints have no tokenizer, and their ends of text stand in config.json."""
    engine = load(save(tmp_path, None), device="cpu", dtype="float32")
    assert engine.codec.tokenizer is None
    assert engine.codec.end_tokens == {2}
    assert len(engine.generate([3, 4], max_new_tokens=4, end_tokens=()).ids) == 4


@pytest.mark.parametrize(("value", "expected"), [([5, 7], {5, 7}), (9, {9}), (None, {2}), ([], set())])
def test_ends_of_text_come_from_the_generation_config(tmp_path: Path, value: object, expected: set[int]) -> None:
    """Chat models end a turn with a token of their own: missing it, an answer runs on to the budget."""
    folder = save(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": value}))
    assert load(folder, device="cpu").codec.end_tokens == expected


@pytest.mark.parametrize("value", ["</s>", [True], [-1], 1.5])
def test_damaged_ends_of_text_are_refused(tmp_path: Path, value: object) -> None:
    """A wrong type must not surface as a TypeError in the middle of a run."""
    folder = save(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": value}))
    with pytest.raises(ModelError, match="eos_token_id of generation_config.json"):
        load(folder, device="cpu")


def test_a_damaged_tokenizer_is_refused_in_one_line(tmp_path: Path) -> None:
    """Errors of compiled code must not reach a person as they are."""
    folder = save(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match="tokenizer") as caught:
        load(folder, device="cpu")
    assert "\n" not in str(caught.value)


def edit(name: str, change: Callable[[Any], Any]) -> Callable[[Path], Any]:
    """Change the content of a JSON file."""

    def damage(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return damage


def write(name: str, content: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_text(content)


TOKENIZER, CONFIG = "tokenizer.json", "tokenizer_config.json"
DAMAGED: list[tuple[Callable[[Path], Any], str]] = [
    (write(TOKENIZER, "version https://git-lfs.github.com/spec/v1"), "tokenizer.json in .* is no JSON from line 1"),
    (write(CONFIG, "["), "tokenizer_config.json in .* is no JSON from line 1"),
    (write(CONFIG, "[]"), "tokenizer_config.json in .* holds no JSON object"),
    (write("added_tokens.json", "{"), "added_tokens.json in .* is no JSON"),
    (edit(TOKENIZER, lambda held: held["model"].update(type="Other")), "tokenizer.json in .*its Model is of no known"),
    (edit(TOKENIZER, lambda held: held.pop("model")), "tokenizer.json in .*it has no model"),
    (edit(TOKENIZER, lambda held: held["model"]["vocab"].update(w3="6")), "tokenizer.json in .* is damaged"),
    (edit(CONFIG, lambda held: held.update(eos_token=7)), "tokenizer_config.json or .*eos_token must be a text"),
    (lambda folder: (folder / TOKENIZER).unlink(), "has no tokenizer.json.*fetch tokenizer.json"),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGED)
def test_a_damaged_tokenizer_is_named_by_its_file(tmp_path: Path, damage: Callable[[Path], Any], reason: str) -> None:
    """Three libraries have words of their own for each, and none names the file."""
    save(tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelError, match=reason) as caught:
        load_tokenizer(tmp_path)
    assert "untagged" not in str(caught.value) and len(str(caught.value)) < 400


@pytest.mark.parametrize("rows", [65, 67, 80])
def test_padding_of_a_drafter_may_differ(tmp_path: Path, rows: int) -> None:
    """Families pad their embeddings differently by size: refusing that would refuse most real pairs."""
    target, draft = save(tmp_path / "target"), save(tmp_path / "draft", vocab_size=rows)
    engine = load(target, draft=draft, device="cpu", dtype="float32")
    assert engine.draft is not None and engine.draft.card.vocabulary == 67
    prompt = [66, 5, 6]  # 66 is a row of the target's padding
    for sampling in ({}, {"temperature": 1.0, "top_k": 20, "repetition_penalty": 1.2, "seed": 3}):
        options = {"sampling": sampling, "max_new_tokens": 20, "end_tokens": ()}
        result = engine.generate(prompt, "draft_model", **options)
        assert engine.rescore(result.trace).violations == 0
        if not sampling:
            assert result.ids == engine.generate(prompt, **options).ids


def test_other_tokenizers_are_refused(tmp_path: Path) -> None:
    """Equal sizes say nothing: a drafter with other words drafts nonsense, silently."""
    target = save(tmp_path / "target")
    other = save(tmp_path / "other", [*WORDS[:10], "other", *WORDS[11:]])
    with pytest.raises(
        ModelError, match=f"first at id 10, which is '{WORDS[10]}' for the target and 'other' for the drafter"
    ):
        load(target, draft=other, device="cpu")
    bare = save(tmp_path / "bare", None, vocab_size=70)
    with pytest.raises(ModelError, match="70 and 67 entries"):
        load(target, draft=bare, device="cpu")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"name": ""}, "name a model"),
        ({"name": "a\0b"}, "name a model"),
        ({"name": 3}, "name a model"),
        ({"name": "/no/such/folder"}, "not a folder"),
        ({"name": "toy", "draft": "org/model"}, "own drafter"),
        ({"name": "toy", "device": "cuda"}, "table on the CPU"),
        ({"name": "toy", "dtype": "float32"}, "table on the CPU"),
        ({"name": "/no/such/folder", "draft": "toy"}, "drafts for"),
    ],
)
def test_names_that_name_nothing(arguments: dict[str, Any], reason: str) -> None:
    """Every wrong name ends in one sentence."""
    with pytest.raises(ModelError, match=reason):
        load(**arguments)


@pytest.mark.parametrize("wanted", [3, 5, 9])
def test_resized_logits(wanted: int) -> None:
    """Columns cut off or filled up must leave the others where they are and never win."""
    model = TableModel(lambda key: torch.arange(5.0) - 9.0, 1, 5)
    logits = Resized(model, wanted).open(8, 8).read([wanted - 1], (-1,)).logits[0]
    assert logits.tolist() == [*(index - 9.0 for index in range(min(wanted, 5))), *[-torch.inf] * max(0, wanted - 5)]
