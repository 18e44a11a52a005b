"""N-gram tables in few bytes: the same words, and nothing of a damaged file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save

from decoding.errors import ModelError
from decoding.model.loading import decoder_of
from decoding.parts.shipped_tables import read_tables, write_tables
from decoding.parts.tables import NgramTables, build_tables
from tests.families import tiny

VOCABULARY = 67


@pytest.fixture(scope="module")
def tables() -> NgramTables:
    return build_tables(decoder_of(tiny("llama")), lambda what, share: None, head=[3, 5])


def test_they_hold_the_same_words_and_nearly_the_same_probabilities(tables: NgramTables, tmp_path: Path) -> None:
    path = tmp_path / "tables.safetensors"
    write_tables(path, tables)
    shipped = read_tables(path, VOCABULARY)
    assert shipped.head == tables.head == (3, 5) and shipped.about.endswith("behind 3 5")
    assert torch.equal(shipped.tensors["unigram"], tables.tensors["unigram"])
    for token in range(VOCABULARY):
        ours, theirs = shipped.bigrams(token), tables.bigrams(token)
        assert [follower for follower, _ in ours] == [follower for follower, _ in theirs]
        assert [share for _, share in ours] == pytest.approx([share for _, share in theirs], abs=1e-3)
        assert shipped.chain(token, 9) == tables.chain(token, 9)
    write_tables(tmp_path / "again.safetensors", shipped)
    assert read_tables(tmp_path / "again.safetensors", VOCABULARY).digest == shipped.digest != tables.digest


def changed(name: str, value: float) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        tensors = load(path.read_bytes())
        tensors[name][0, 0] = value
        path.write_bytes(save(tensors, {"version": "1", "head": ""}))

    return change


def described(facts: dict[str, str] | None) -> Callable[[Path], object]:
    def describe(path: Path) -> None:
        path.write_bytes(save(load(path.read_bytes()), facts))

    return describe


DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "no such token": changed("bigram", VOCABULARY),
    "no such unigram": changed("unigram", VOCABULARY),
    "negative": changed("probability", -0.5),
    "above one": changed("probability", 1.5),
    "no number": changed("probability", float("nan")),
    "another version": described({"version": "2", "head": ""}),
    "a head of words": described({"version": "1", "head": "3 five"}),
    "nothing said": described({}),
    "no facts at all": described(None),
    "something else": lambda path: path.write_bytes(b"tables"),
    "another byte within": lambda path: path.write_bytes(path.read_bytes()[:99] + b"?" + path.read_bytes()[100:]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_ones_are_refused_in_a_sentence(damage: str, tables: NgramTables, tmp_path: Path) -> None:
    path = tmp_path / "tables.safetensors"
    write_tables(path, tables)
    DAMAGES[damage](path)
    with pytest.raises(ModelError, match=r"n-gram tables 'tables.safetensors' are damaged"):
        read_tables(path, VOCABULARY)


def test_those_of_another_vocabulary_are_refused(tables: NgramTables, tmp_path: Path) -> None:
    """The control: a change that is none is read."""
    path = tmp_path / "tables.safetensors"
    write_tables(path, tables)
    described({"version": "1", "head": ""})(path)
    assert read_tables(path, VOCABULARY).head == ()
    with pytest.raises(ModelError, match="damaged"):
        read_tables(path, VOCABULARY + 1)
