"""N-gram tables against their definitions, and their cache against everything a disk can do to it."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from decoding.errors import ModelError
from decoding.model.loading import decoder_of
from decoding.model.session import Model
from decoding.model.table import TableModel
from decoding.parts import tables as module
from decoding.parts.tables import NgramTables, build, load_tables
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


def said(model: Model, *text: int) -> torch.Tensor:  # (V,)
    """What the model says after a text."""
    session = model.open(len(text), len(text))
    session.reset(len(text))
    return session.read(text, tuple(range(-1, len(text) - 1))).logits[-1]


@pytest.mark.parametrize("head", [(), (5,), (5, 0, 7)])
@pytest.mark.parametrize("rows", [1, 4, 256])
@pytest.mark.parametrize("model", [hashed(13, 2), tied(13, 2), tied(3, 1)], ids=["hashed", "tied", "three"])
def test_a_bigram_is_what_the_model_says_behind_a_token_alone(
    model: TableModel, rows: int, head: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens read in one pass must not see each other; of equally likely ones the lowest id comes first."""
    head = tuple(token % model.card.vocabulary for token in head)
    monkeypatch.setattr(module, "_ROWS", rows)
    made = build(model, top=4, length=5, progress=quiet, head=head)
    for token in range(model.card.vocabulary):
        distribution = said(model, *head, token).float().softmax(-1)
        pairs = made.bigrams(token)
        assert [other for other, _ in pairs] == ranked(distribution)[:4]
        assert [share for _, share in pairs] == pytest.approx([float(distribution[other]) for other, _ in pairs])


def by_hand(
    model: Model, rows: int, depth: int, head: Sequence[int], longest: int
) -> tuple[list[dict[int, float]], list[list[int]]]:
    """The mean shares of every token's followers, over texts that the model writes, and these texts; a plain loop."""
    vocabulary = model.card.vocabulary
    sums, counts = [Counter[int]() for _ in range(vocabulary)], Counter[int]()
    groups = math.ceil(vocabulary / rows)
    texts = [list(head)]
    for group in range(groups):
        if len(texts[-1]) > len(head) + longest:
            texts.append(list(head))
        branches = [[token] for token in range(group, vocabulary, groups)]
        for branch in branches:
            for _ in range(depth):
                distribution = said(model, *texts[-1], *branch).float().softmax(-1)
                counts[branch[-1]] += 1
                for follower, share in enumerate(distribution.tolist()):
                    sums[branch[-1]][follower] += share
                branch.append(ranked(distribution)[0])
        likely = said(model, *texts[-1]) if texts[-1] else torch.zeros(vocabulary)
        texts[-1] += max(branches, key=lambda branch: (float(likely[branch[0]]), -branch[0]))[:-1]
    return [{token: total / counts[x] for token, total in row.items()} for x, row in enumerate(sums)], texts


@pytest.mark.parametrize("head", [(), (5,), (2, 7)])
@pytest.mark.parametrize(("rows", "depth", "longest"), [(4, 2, 64), (5, 4, 64), (3, 3, 5), (1, 2, 3), (13, 3, 64)])
@pytest.mark.parametrize("model", [hashed(13, 3), tied(13, 2)], ids=["hashed", "tied"])
def test_a_model_that_writes_on_is_heard_wherever_a_token_stands(
    model: TableModel, rows: int, depth: int, longest: int, head: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A branch that sees another one, a text that goes wrong, a place that is missed or counted twice."""
    monkeypatch.setattr(module, "_ROWS", rows * depth)
    monkeypatch.setattr(module, "_TEXT", longest)
    made = build(model, top=13, length=2, progress=quiet, head=head, depth=depth)
    wanted, texts = by_hand(model, rows, depth, head, longest)
    assert (len(texts) > 1) == (longest < 64)
    for token, row in enumerate(wanted):
        pairs = made.bigrams(token)
        assert {other for other, _ in pairs} == set(range(13))
        assert [share for _, share in pairs] == pytest.approx(sorted(row.values(), reverse=True), abs=1e-6)
        assert all(share == pytest.approx(row[other], abs=1e-6) for other, share in pairs)
    assert made.digest != build(model, top=13, length=2, progress=quiet, head=head).digest


@pytest.mark.parametrize("name", ["mistral", "llama3", "longrope"])
def test_a_network_that_writes_on_is_read_in_its_own_texts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions, windows and stored keys have to be those of the text that a branch belongs to."""
    model = decoder_of(tiny(name), torch.float64)
    monkeypatch.setattr(module, "_ROWS", 36)
    monkeypatch.setattr(module, "_TEXT", 20)
    made = build(model, top=67, length=2, progress=quiet, head=[1], depth=3)
    wanted, texts = by_hand(model, 12, 3, [1], 20)
    assert len(texts) == 1 and len(texts[0]) == 1 + 6 * 3
    for token, row in enumerate(wanted):
        assert all(share == pytest.approx(row[other], abs=1e-6) for other, share in made.bigrams(token))
    alone = build(model, top=67, length=2, progress=quiet)
    assert torch.equal(made.tensors["unigram"], alone.tensors["unigram"]), "embeddings know of no text"


def test_only_a_small_vocabulary_is_written_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large one is read as in the paper: nobody should wait until ten times as many tokens are read."""
    asked: list[int] = []

    def spy(model: Model, *, depth: int, **options: Any) -> NgramTables:
        asked.append(depth)
        return build(model, depth=depth, **options)

    monkeypatch.setattr(module, "build", spy)
    for small in (13, 12):
        monkeypatch.setattr(module, "_SMALL", small)
        load_tables(named(), quiet, folder=tmp_path / str(small))
    assert asked == [module._DEPTH, 1]


def test_tokens_in_front_change_the_tables_and_are_named() -> None:
    """Two records of runs with different tables must not look alike."""
    bare, led = (build(hashed(13, 2), top=4, length=3, progress=quiet, head=head) for head in ((), (5, 7)))
    assert any(bare.bigrams(token) != led.bigrams(token) for token in range(13))
    assert led.about == f"n-gram tables {led.digest[:12]} behind 5 7"
    assert bare.about == f"n-gram tables {bare.digest[:12]}" and bare.digest != led.digest
    assert make(hashed(13, 2)).digest == bare.digest
    for token in (13, -1):
        with pytest.raises(ModelError, match=r"at the beginning are not all of the model's 13: leave them out"):
            build(hashed(13, 2), top=4, length=3, progress=quiet, head=(5, token))


@pytest.mark.parametrize("length", [1, 3, 16])
def test_a_chain_is_the_bigram_applied_again_and_again(length: int) -> None:
    """A chain longer than the table goes on from its last link."""
    made = build(hashed(13, 2), top=2, length=length, progress=quiet)
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
    """A table has no embeddings; its logits after one token take the place of their products."""
    model = hashed(13, 2)
    made = build(model, top=13, length=1, progress=quiet)
    meeting = np.stack([said(model, token).numpy() for token in range(13)])
    orders = unigram_orders(meeting)
    assert (made.unigrams("distance"), made.unigrams("product")) == orders and orders[0] != orders[1]


@pytest.mark.parametrize("name", ["mistral", "qwen2"])
def test_a_network_is_ranked_by_its_embeddings_and_read_token_by_token(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input and output embeddings mixed up, a norm in between, or a window's edge, would change the order."""
    network = tiny(name)  # one with tied embeddings and one without
    model = decoder_of(network, torch.float64)
    monkeypatch.setattr(module, "_ROWS", 20)
    made = build(model, top=67, length=2, progress=quiet, head=[1])
    for token in (0, 1, 19, 20, 66):
        assert [other for other, _ in made.bigrams(token)] == ranked(said(model, 1, token).float().softmax(-1))
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
    got: list[float] = []
    build(hashed(13, 2), top=2, length=2, progress=lambda what, share: got.append(share))
    assert got == [0.0, 1.0]


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


def load(folder: Path, model: TableModel | None = None, head: Sequence[int] = ()) -> tuple[NgramTables, int]:
    """NgramTables, and whether they were made."""
    got = Counted()
    return load_tables(model or named(), got, folder=folder, head=head), got.made


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
    half.precision = "float16"
    others = ((named("b", seed=1), ()), (named(), (5,)), (named(), (5, 1)), (named(), (51 % 13,)), (half, ()))
    for model, head in others:
        assert [load(tmp_path, model, head)[1] for _ in range(2)] == [1, 0]
    assert len(list(tmp_path.iterdir())) == 6, "a temporary file was left behind"


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
    "other head": rewrite(lambda tensors, facts: facts.update(head="5")),
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
