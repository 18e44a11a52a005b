"""Drafting from common tokens only: the same guesses among them, and the same text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ModelError
from decoding.loader import load
from decoding.model.decoder import Decoder
from decoding.model.loading import decoder_of
from decoding.parts import Parts
from decoding.parts.adapter import Adapter
from decoding.parts.adapter_files import load_adapter
from decoding.parts.draft_vocabulary import VOCABULARY_FILE, drafted_by, narrowed, read_vocabulary
from decoding.parts.heads import Heads, HeadWeights, load_heads
from decoding.sampling import Sampling
from decoding.types import JSON
from lab.training.part_folder import save_adapter, save_heads
from lab.training.vocabulary import write_vocabulary
from tests.families import adapter, near, tiny

COMMON = [*range(3, 40), 44, 66]
PROMPT = (5, 9, 21, 5, 9)
DRAFTING: tuple[tuple[str, dict[str, JSON]], ...] = (
    ("draft_model", {}),
    ("draft_model", {"threshold": 0.02}),
    ("ouroboros", {"drafting": "plain"}),
    ("ouroboros", {}),
)


@pytest.fixture(scope="module")
def model() -> Decoder:
    return decoder_of(tiny("llama"), torch.float64)


def random(*size: int) -> torch.Tensor:
    return 0.3 * torch.randn(size, generator=torch.Generator().manual_seed(sum(size)), dtype=torch.float64)


def both_heads(model: Decoder, folder: Path, own: tuple[int, ...]) -> tuple[Heads, Heads]:
    """Return the same heads with all tokens and with the common ones; every second head may have an output layer."""
    size, vocabulary = model.shape.hidden, model.shape.vocabulary
    weights = HeadWeights(random(1, 3, size, size), random(1, 3, size), random(len(own), vocabulary, size), own)
    save_heads(folder, weights, "tiny")
    whole = load_heads(str(folder), model)
    write_vocabulary(folder, COMMON)
    return whole, load_heads(str(folder), model)


def both_adapters(model: Decoder, folder: Path) -> tuple[Adapter, Adapter]:
    save_adapter(folder, *adapter(model))
    whole = load_adapter(str(folder), model)
    write_vocabulary(folder, COMMON)
    return whole, load_adapter(str(folder), model)


def both_drafts(model: Decoder, folder: Path) -> tuple[Decoder, Decoder]:
    """Return a draft model that drafts all tokens, and one that drafts the common ones."""
    write_vocabulary(folder, COMMON)
    whole = decoder_of(near("llama"), torch.float64)
    narrow = narrowed(whole, folder, model.shape.vocabulary)
    assert isinstance(narrow, Decoder)
    return whole, narrow


@pytest.mark.parametrize("own", [(), (1,), (0, 1, 2)])
def test_heads_rank_the_common_tokens_as_before(model: Decoder, own: tuple[int, ...], tmp_path: Path) -> None:
    whole, narrow = both_heads(model, tmp_path, own)
    hidden = random(model.shape.hidden)
    ranks = model.shape.vocabulary
    wanted = [[token for token in row if token in COMMON] for row in whole.top(hidden, ranks).tolist()]
    assert narrow.top(hidden, ranks).tolist() == wanted
    assert narrow.top(hidden, 4).tolist() == [row[:4] for row in wanted]
    logits = narrow.logits(hidden)
    assert logits.shape == (3, ranks) and torch.allclose(logits[:, COMMON], whole.logits(hidden)[:, COMMON])
    assert int(logits.isneginf().sum()) == 3 * (ranks - len(COMMON))
    assert narrow.about != whole.about


def test_an_adapter_says_the_same_of_the_common_tokens(model: Decoder, tmp_path: Path) -> None:
    whole, narrow = both_adapters(model, tmp_path)
    row = random(model.shape.hidden)
    logits, all_of_them = (one.open(8, 8).logits(row) for one in (narrow, whole))
    assert torch.allclose(logits, all_of_them[COMMON])
    assert narrow.about != whole.about


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_rare_tokens_are_written_but_never_drafted(model: Decoder, temperature: float, tmp_path: Path) -> None:
    """A sampled draft must be judged by the distribution that it was drawn from, in which rare tokens have no share."""
    heads, exit_ = both_heads(model, tmp_path / "heads", ())[1], both_adapters(model, tmp_path / "adapter")[1]
    draft = both_drafts(model, tmp_path)[1]
    engine = Engine(
        model, Codec(), draft, Parts({"medusa": lambda progress: heads, "kangaroo": lambda progress: exit_})
    )
    sampling = Sampling(temperature=temperature, seed=3)
    plain = engine.generate(PROMPT, sampling=sampling, max_new_tokens=48, end_tokens=()).ids
    for method, params in (*DRAFTING, ("medusa", {}), ("kangaroo", {})):
        steps = list(engine.decode(PROMPT, method, params, sampling, 48, end_tokens=(), record="full"))
        nodes = [node for step in steps for node in zip(step.sources, step.tokens, strict=True)]
        drafted = {token for source, token in nodes if source.split(":")[0] in ("draft", "exit", "medusa")}
        written = [token for step in steps for token in step.emitted]
        assert drafted and drafted <= set(COMMON)
        assert not set(written) <= set(COMMON)
        if not temperature:
            assert tuple(written) == plain


def written_as(name: str, ids: torch.Tensor) -> Callable[[Path], None]:
    return lambda path: save_file({name: ids}, path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "another name": written_as("tokens", torch.tensor([1, 2], dtype=torch.int32)),
    "no tokens": written_as("ids", torch.tensor([], dtype=torch.int32)),
    "no such token": written_as("ids", torch.tensor([1, 67], dtype=torch.int32)),
    "a negative one": written_as("ids", torch.tensor([-1, 2], dtype=torch.int32)),
    "twice the same": written_as("ids", torch.tensor([2, 2], dtype=torch.int32)),
    "no whole numbers": written_as("ids", torch.tensor([1.0, 2.0])),
    "a table": written_as("ids", torch.tensor([[1, 2]], dtype=torch.int32)),
}


def test_a_draft_model_says_the_same_of_the_common_tokens(model: Decoder, tmp_path: Path) -> None:
    whole, narrow = both_drafts(model, tmp_path)
    logits, all_of_them = (one.open(8, 8).read(PROMPT, (-1, 0, 1, 2, 3)).logits for one in (narrow, whole))
    assert torch.allclose(logits, all_of_them[:, COMMON])
    assert narrowed(whole, tmp_path, model.shape.vocabulary + 1) is whole, "a vocabulary that is padded differently"


def test_a_folder_drafts_common_tokens_and_as_a_target_all(tmp_path: Path) -> None:
    """The list is for drafting: a draft model that is loaded by itself writes all of its tokens."""
    for name, model in (("target", tiny("llama")), ("draft", near("llama"))):
        model.save_pretrained(tmp_path / name)
    write_vocabulary(tmp_path / "draft", COMMON)
    engine = load(str(tmp_path / "target"), draft=str(tmp_path / "draft"), device="cpu", dtype="float32")
    assert engine.draft is not None and (drafted := drafted_by(engine.draft)) is not None
    assert drafted.listed == COMMON and drafted_by(engine.model) is None
    assert drafted_by(load(str(tmp_path / "draft"), device="cpu", dtype="float32").model) is None


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_refused_in_a_sentence(damage: str, model: Decoder, tmp_path: Path) -> None:
    write_vocabulary(tmp_path, COMMON)
    vocabulary = read_vocabulary(tmp_path, model)
    assert vocabulary is not None and vocabulary.ids.tolist() == COMMON
    DAMAGES[damage](tmp_path / VOCABULARY_FILE)
    with pytest.raises(ModelError, match=r"^vocabulary\.safetensors in .*: (fetch|make) it again"):
        read_vocabulary(tmp_path, model)


def test_without_a_file_all_tokens_are_drafted(model: Decoder, tmp_path: Path) -> None:
    assert read_vocabulary(tmp_path, model) is None
