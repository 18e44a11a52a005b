"""N-gram tables against their definitions, and their cache against everything a disk can do to it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from decoding.errors import ModelError
from decoding.model.decoder import Decoder
from decoding.model.session import Model
from decoding.model.table import TableModel
from decoding.parts import tables as module
from decoding.parts.tables import Tables, build, load_tables
from tests.families import tiny
from tests.toy_tables import make
from tests.toys import hashed, tied

NAMES = ("unigram", "bigram", "probability")
Tensors = dict[str, torch.Tensor]
Damage = Callable[[Path], object]


def quiet(what: str, share: float) -> None:
    """Nobody listens."""


def ranked(scores: torch.Tensor) -> list[int]:
    """Ids by falling score, the lowest first among equals."""
    return sorted(range(len(scores)), key=lambda token: (-float(scores[token]), token))


def alone(model: Model, token: int, bos: int | None = None) -> torch.Tensor:  # (V,)
    """What the model says behind one token, read as a text of its own."""
    text = [token] if bos is None else [bos, token]
    session = model.open(8, 8)
    session.reset(len(text))
    return session.read(text, tuple(range(-1, len(text) - 1))).logits[-1]


@pytest.mark.parametrize("bos", [None, 5])
@pytest.mark.parametrize("rows", [1, 4, 256])
@pytest.mark.parametrize("model", [hashed(13, 2), tied(13, 2), tied(3, 1)], ids=["hashed", "tied", "three"])
def test_a_bigram_is_what_the_model_says_behind_a_token_alone(
    model: TableModel, rows: int, bos: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens read in one pass must not see each other; of equally likely ones the lowest id comes first."""
    bos = None if model.card.vocabulary < 5 else bos
    monkeypatch.setattr(module, "_ROWS", rows)
    made = build(model, top=4, length=5, tell=quiet, bos=bos)
    for token in range(model.card.vocabulary):
        law = alone(model, token, bos).float().softmax(-1)
        pairs = made.bigrams(token)
        assert [other for other, _ in pairs] == ranked(law)[:4]
        assert [share for _, share in pairs] == pytest.approx([float(law[other]) for other, _ in pairs])


def test_a_token_in_front_changes_the_tables_and_is_named() -> None:
    """Two records of runs with different tables must not look alike."""
    bare, led = (build(hashed(13, 2), top=4, length=3, tell=quiet, bos=bos) for bos in (None, 5))
    assert any(bare.bigrams(token) != led.bigrams(token) for token in range(13))
    assert led.about == f"n-gram tables {led.digest[:12]} behind token 5"
    assert bare.about == f"n-gram tables {bare.digest[:12]}" and bare.digest != led.digest
    assert make(hashed(13, 2)).digest == bare.digest
    with pytest.raises(ModelError, match="begin-of-text token 13 is none of the model's 13: leave it out"):
        build(hashed(13, 2), top=4, length=3, tell=quiet, bos=13)


@pytest.mark.parametrize("length", [1, 3, 16])
def test_a_chain_is_the_bigram_applied_again_and_again(length: int) -> None:
    """A chain longer than the table goes on from its last link."""
    made = build(hashed(13, 2), top=2, length=length, tell=quiet)
    for token in range(13):
        links, last = [], token
        for _ in range(20):
            last = made.bigrams(last)[0][0]
            links.append(last)
        assert [made.chain(token, count) for count in range(21)] == [links[:count] for count in range(21)]


def unigram_orders(meeting: np.ndarray) -> tuple[list[int], list[int]]:  # (V, V): v_y . u_x
    """The paper's ranking and its appendix's, over everything that is added up."""
    mean = meeting.mean(1, keepdims=True)
    distance, product = ((meeting - mean) ** 2).sum(0), (mean * meeting).sum(0)
    return ranked(torch.from_numpy(-distance)), ranked(torch.from_numpy(-product))


def test_without_embeddings_unigrams_come_from_the_logits() -> None:
    """A table has no embeddings; its logits behind one token take the place of their products."""
    model = hashed(13, 2)
    made = build(model, top=13, length=1, tell=quiet)
    meeting = np.stack([alone(model, token).numpy() for token in range(13)])
    orders = unigram_orders(meeting)
    assert (made.unigrams("distance"), made.unigrams("product")) == orders and orders[0] != orders[1]


@pytest.mark.parametrize("name", ["mistral", "qwen2"])
def test_a_network_is_ranked_by_its_embeddings_and_read_token_by_token(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input and output embeddings mixed up, a norm in between, or a window's edge, would change the order."""
    network = tiny(name)  # one with tied embeddings and one without
    model = Decoder.from_transformers(network, torch.float64)
    monkeypatch.setattr(module, "_ROWS", 20)
    made = build(model, top=67, length=2, tell=quiet, bos=1)
    for token in (0, 1, 19, 20, 66):
        assert [other for other, _ in made.bigrams(token)] == ranked(alone(model, token, 1).float().softmax(-1))
    V = network.get_input_embeddings().weight.double()
    U = network.get_output_embeddings().weight.double()
    covariance, centre = V.T @ V, U.mean(0)
    distance = ((U - centre) @ covariance * (U - centre)).sum(1).sqrt()
    assert made.unigrams("distance") == ranked(torch.exp(-distance / distance.max()))
    assert made.unigrams("product") == ranked(-(centre @ covariance @ U.T))
    mixed_up = ranked(-((U - centre) @ (U.T @ U) * (U - centre)).sum(1))
    assert (mixed_up == made.unigrams("distance")) == (name == "qwen2"), "tied embeddings alone are one and the same"


@pytest.mark.parametrize("odd", [-torch.inf, torch.inf, torch.nan])
def test_numbers_that_are_none_still_give_tokens_and_probabilities(odd: float) -> None:
    """A table of such numbers must be usable: what it guesses is verified anyway."""
    row = torch.tensor([0.5, odd, odd, 0.25, odd], dtype=torch.float64)
    made = make(TableModel(lambda key: row.roll(key[-1]), 1, 5))
    for ids in (made.unigrams("distance"), made.unigrams("product"), [token for token, _ in made.bigrams(2)]):
        assert len(set(ids)) == 4 and set(ids) <= set(range(5))
    assert all(0.0 <= share <= 1.0 for _, share in made.bigrams(0))


def test_making_tables_is_told() -> None:
    """Nobody waits a minute in silence."""
    told: list[float] = []
    build(hashed(13, 2), top=2, length=2, tell=lambda what, share: told.append(share))
    assert told == [0.0, 1.0]


# The cache ----------------------------------------------------------------------------------------------------------


def named(digit: str = "a", seed: int = 0) -> TableModel:
    """A table model with a hash of its own."""
    model = hashed(13, 2, seed)
    model.card = replace(model.card, hash=digit * 64)
    return model


class Counted:
    """Counts how often tables are made."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, what: str, share: float) -> None:
        self.made += share == 1.0


def load(folder: Path, model: TableModel | None = None, bos: int | None = None) -> tuple[Tables, int]:
    """Tables, and whether they were made."""
    told = Counted()
    return load_tables(model or named(), told, folder=folder, bos=bos), told.made


def cached(folder: Path) -> Path:
    """The one file of a cache."""
    (path,) = folder.iterdir()
    return path


def test_tables_are_made_once_per_model_and_setting(tmp_path: Path) -> None:
    """Every part of a file's name matters, and what comes back is what was made."""
    one, made = load(tmp_path)
    two, again = load(tmp_path)
    assert (made, again) == (1, 0)
    assert one.about == two.about and one.chain(3, 40) == two.chain(3, 40)
    assert [one.bigrams(token) for token in range(13)] == [two.bigrams(token) for token in range(13)]
    half = named()
    half.dtype = torch.float16
    for model, bos in ((named("b", seed=1), None), (named(), 5), (half, None)):
        assert [load(tmp_path, model, bos)[1] for _ in range(2)] == [1, 0]
    assert len(list(tmp_path.iterdir())) == 4, "a temporary file was left behind"


def test_a_model_that_its_hash_does_not_tell_from_others_is_not_cached(tmp_path: Path) -> None:
    """All table models have the same hash: one would get another's tables."""
    for text in ("0", "A", "/"):
        assert [load(tmp_path, named(text))[1] for _ in range(2)] == [1, 1]
    assert not list(tmp_path.iterdir())


def flip(path: Path) -> None:
    """One bit of the last number."""
    content = bytearray(path.read_bytes())
    content[-4] ^= 1
    path.write_bytes(content)


def rewrite(change: Callable[[Tensors, dict[str, str]], object]) -> Damage:
    """Other tensors or another description, in a file whose checksum is right all the same."""

    def spoil(path: Path) -> None:
        tensors = load_file(path)
        with safe_open(path, framework="pt") as file:
            facts = file.metadata()
        facts["sha256"] = ""
        change(tensors, facts)
        if "sha256" in facts:
            content = [tensors[name].numpy().tobytes() for name in NAMES if name in tensors]
            facts["sha256"] = hashlib.sha256(b"".join(content)).hexdigest()
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, facts)

    return spoil


def set_to(name: str, value: float) -> Damage:
    """The last number of a tensor."""
    return rewrite(lambda tensors, facts: tensors[name].view(-1)[-1:].fill_(value))


def make_pipe(path: Path) -> None:
    """Reading it would wait for ever."""
    path.unlink()
    os.mkfifo(path)


DAMAGES: dict[str, Damage] = {
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"\xff" * 200),
    "long header": lambda path: path.write_bytes((2**40).to_bytes(8, "little") + b"{}"),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + bytes(2**20)),
    "flipped": flip,
    "missing": rewrite(lambda tensors, facts: tensors.pop("unigram")),
    "narrow": rewrite(lambda tensors, facts: tensors.update(bigram=tensors["bigram"][:, :4])),
    "short": rewrite(lambda tensors, facts: tensors.update(bigram=tensors["bigram"][:7])),
    "flat": rewrite(lambda tensors, facts: tensors.update(bigram=tensors["bigram"].flatten())),
    "long ids": rewrite(lambda tensors, facts: tensors.update(bigram=tensors["bigram"].long())),
    "doubles": rewrite(lambda tensors, facts: tensors.update(probability=tensors["probability"].double())),
    "other numbers": rewrite(lambda tensors, facts: tensors.update(probability=tensors["bigram"].clone())),
    "no facts": rewrite(lambda tensors, facts: facts.clear()),
    "other model": rewrite(lambda tensors, facts: facts.update(model="b" * 64)),
    "other format": rewrite(lambda tensors, facts: facts.update(format="0")),
    "other bos": rewrite(lambda tensors, facts: facts.update(bos="5")),
    "id too high": set_to("bigram", 13),
    "id negative": set_to("bigram", -1),
    "unigram too high": set_to("unigram", 2**31 - 1),
    "probability above one": set_to("probability", 1.5),
    "probability not a number": set_to("probability", float("nan")),
    "gone": Path.unlink,
    "pipe": make_pipe,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_cache_is_made_anew(damage: str, tmp_path: Path) -> None:
    """No error, no wait, no wrong tables: whatever lies in the file's place is replaced."""
    wanted, _ = load(tmp_path)
    DAMAGES[damage](cached(tmp_path))
    found, made = load(tmp_path)
    assert made == 1, "what was damaged has been believed"
    assert found.digest == wanted.digest
    assert load(tmp_path)[1] == 0


def test_a_rewritten_but_sound_cache_is_believed(tmp_path: Path) -> None:
    """The control: without damage, the way in which the files above are rewritten does no harm."""
    load(tmp_path)
    rewrite(lambda tensors, facts: None)(cached(tmp_path))
    assert load(tmp_path)[1] == 0
    set_to("bigram", 3)(cached(tmp_path))  # a token as good as any, under a checksum that is right
    found, made = load(tmp_path)
    assert made == 0 and found.bigrams(12)[-1][0] == 3


@pytest.mark.parametrize("kind", ["file", "directory in place", "no right", "name too long"])
def test_where_nothing_can_be_written_there_is_no_cache(kind: str, tmp_path: Path) -> None:
    """A read-only home must not keep anyone from running."""
    folder = tmp_path / "cache"
    if kind == "file":
        folder.write_text("in the way")
    elif kind == "name too long":
        folder = tmp_path / ("long" * 100)
    elif kind == "no right":
        folder.mkdir(mode=0o500)
    else:
        load(folder)
        path = cached(folder)
        path.unlink()
        (path / "inside").mkdir(parents=True)
    tables, made = load(folder)
    assert made == 1 and tables.digest == load(tmp_path / "other")[0].digest
    if kind == "directory in place":
        assert [path.name for path in folder.iterdir()] == [path.name], "a temporary file was left behind"


def test_the_cache_lies_where_the_user_keeps_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_CACHE_HOME where it is absolute, else ~/.cache, else none: never the folder one happens to be in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for value, folder in ((str(tmp_path / "xdg"), tmp_path / "xdg"), ("relative", tmp_path / "home" / ".cache")):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        load_tables(named(), quiet)
        assert cached(folder / "specscope").suffix == ".safetensors"
    monkeypatch.setenv("HOME", "nowhere")
    assert load_tables(named(), quiet).bigrams(0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "xdg"]
