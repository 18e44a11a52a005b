"""Folders of models that run in transformers' own modules: good ones load, bad ones are refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from decoding import load
from decoding.errors import ModelError
from decoding.model import memory
from decoding.model.config import read_shape
from decoding.model.files import read_config
from decoding.model.loading import load_model
from decoding.model.transformers_model import TransformersModel
from tests.families import tiny as of_family
from tests.model.test_transformers_model import VOCABULARY, tiny
from tests.model.texts import chain, text


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a GPT-2."""
    folder = tmp_path_factory.mktemp("gpt2")
    tiny("gpt2").save_pretrained(folder)
    return folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    """Return the same, to be spoilt."""
    for file in good.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_a_folder_loads_as_transformers_reads_it(good: Path) -> None:
    """A weight that is left as it was made at random, or another dtype than the one that was asked for."""
    model = load_model(str(good), dtype="float32")
    assert isinstance(model, TransformersModel)
    with torch.no_grad():
        wanted = tiny("gpt2")(torch.tensor([text(9)])).logits[0]
    torch.testing.assert_close(model.open(16, 16).read(text(9), chain(9)).logits, wanted, rtol=0.0, atol=1e-4)
    card = model.card
    assert (card.family, card.vocabulary, card.context) == ("gpt2", VOCABULARY, 96)
    assert card.parameters == sum(weight.numel() for weight in tiny("gpt2").parameters())
    assert card.weight_bytes == 4 * card.parameters == card.pass_bytes  # the output layer is the embedding
    assert card.token_bytes == 2 * 3 * 32 * 4
    half = load_model(str(good), dtype="bfloat16")
    assert (half.dtype, half.precision, half.card.hash) == (torch.bfloat16, "bfloat16", card.hash)


def test_an_engine_of_a_folder_drafts_for_itself(good: Path) -> None:
    """The loader, the drafter's check and the record know models of both sorts."""
    engine = load(str(good), draft=str(good), dtype="float32")
    result = engine.generate([5, 6, 7], "draft_model", max_new_tokens=8, end_tokens=())
    assert result.summary.draft_acceptance_rate == 1.0
    assert "transformers" in result.trace.header.attention
    assert engine.rescore(result.trace).violations == 0


def test_the_hash_tells_weights_apart(folder: Path) -> None:
    """A trace names its model by the hash."""
    first = load_model(str(folder)).card.hash
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.h.0.mlp.c_fc.weight"][0, 0] += 1
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    assert load_model(str(folder)).card.hash != first


def change(**values: Any) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return spoil


def drop(name: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        del tensors[name]
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return spoil


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a type of tomorrow": (change(model_type="gpt99"), "knows no models of type 'gpt99'"),
    "no type": (change(model_type=None), "knows no models of type 'None'"),
    "a missing weight": (drop("transformer.h.1.attn.c_attn.weight"), "h.1.attn.c_attn.weight is missing"),
    "another size": (change(n_embd=16), "has another shape|cannot load"),
    "an adapter": (lambda folder: (folder / "adapter_config.json").write_text("{}"), "merge it into its model"),
    "pickled": (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "can run code"),
    "cut short": (
        lambda folder: (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-9]),
        "damaged or cut short",
    ),
    "quantised, without its package": (
        change(quantization_config={"quant_method": "gptq", "bits": 4}),
        "weights quantised by gptq cannot be run here",
    ),
    "quantised by bitsandbytes": (
        change(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}),
        "quantised by bitsandbytes",  # cannot be run here, or is not what the files hold
    ),
    "quantised by nobody": (change(quantization_config={"quant_method": "magic"}), "quantised by magic cannot be run"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_folders_are_refused(case: str, folder: Path) -> None:
    """Random numbers in the place of a weight, or code that comes with one, would be worse than an error."""
    spoil, reason = BAD[case]
    spoil(folder)
    with pytest.raises(ModelError, match=reason) as caught:
        load_model(str(folder), dtype="float32")
    assert len(str(caught.value)) < 400 and str(caught.value).isprintable()


def test_quantised_weights_of_a_family_of_ours_are_never_read_as_numbers(tmp_path: Path) -> None:
    """Packed numbers under a llama's names are no weights; those who can read them are asked, or it is refused."""
    of_family("llama").save_pretrained(tmp_path)
    for method in ("awq", "compressed-tensors", "fp8", "mxfp4"):
        change(quantization_config={"quant_method": method})(tmp_path)
        with pytest.raises(ModelError, match=f"quantised by {method}"):
            load_model(str(tmp_path))


def test_what_our_decoder_alone_can_do_is_refused(good: Path) -> None:
    """int8 by our own products, several devices, and training need a decoder of ours."""
    for options, reason in (({"dtype": "int8"}, "int8"), ({"device": "cpu,cpu"}, "split over devices")):
        with pytest.raises(ModelError, match=reason):
            load_model(str(good), **options)
    with pytest.raises(ModelError, match="'gpt2' cannot be run; supported are llama"):
        read_shape(read_config(good)[1])


def test_a_model_that_does_not_fit_is_refused_before_it_is_read(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half-way through the weights the system would end the process without a word."""
    monkeypatch.setattr(memory, "free_memory", lambda device: 10_000)
    for dtype, size in (("float32", "0.2 MB"), ("bfloat16", "0.1 MB")):
        with pytest.raises(ModelError, match=rf"take {size} in {dtype}, but cpu has 0\.0 MB free"):
            load_model(str(good), dtype=dtype)
    with pytest.raises(ModelError, match="the weights of pocket take"):
        load("pocket")


def test_the_memory_that_is_free_is_a_number_of_this_machine() -> None:
    """An estimate that is always too small refuses every model; without Linux nothing is known, and nothing refused."""
    free = memory.free_memory(torch.device("cpu"))
    assert free is None or 2**20 < free < 2**45
