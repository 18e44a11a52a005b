"""What an owner's model is refused for before its weights are read: by real folders, through the file of models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from app.models import entry
from app.models.catalog import read_catalog
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from app.models.weight_bytes import weight_bytes
from decoding import load
from decoding.errors import ModelError
from decoding.model import files
from tests.families import FAMILIES, tiny
from tests.gguf_writer import write
from tests.test_load import WORDS, save

COMMIT = "0123456789" * 4
QUIET = lambda what, share: None  # noqa: E731


@pytest.fixture(autouse=True)
def no_weight_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test here read a tensor, or ask the hub."""

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("a weight was read, or the hub was asked")

    monkeypatch.setattr(files.TensorFiles, "get_raw", refuse)
    monkeypatch.setattr(entry, "fetch", refuse)
    monkeypatch.setattr(entry, "fetched", lambda *arguments, **options: None)


def listed(tmp_path: Path, **keys: object) -> CatalogEntry:
    """Return the entry of a file that lists one model."""
    path = tmp_path / "models.toml"
    path.write_text("[[model]]\nname = 'ours'\n" + "".join(f"{key} = {value!r}\n" for key, value in keys.items()))
    return read_catalog(path).models["ours"]


def refused(ours: CatalogEntry, caplog: pytest.LogCaptureFixture, budget: float = 1e9) -> str:
    """Return what the log says of a model that is refused; visitors must read a sentence without it."""
    with pytest.raises(ModelError, match="^ours cannot be loaded on this server now: choose another model$"):
        ModelPool({"ours": ours}, budget).request(ours).wait(60)
    [record] = caplog.records
    return record.getMessage()


@pytest.mark.parametrize("name", [*FAMILIES, "gpt2"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_size_is_that_of_the_weights(name: str, dtype: str, tmp_path: Path) -> None:
    """Told by the configuration alone: it decides before gigabytes are fetched."""
    if name == "gpt2":
        from transformers import GPT2Config, GPT2LMHeadModel

        model: Any = GPT2LMHeadModel(GPT2Config(vocab_size=67, n_positions=64, n_embd=32, n_layer=2, n_head=2))
    else:
        model = tiny(name)
    model.save_pretrained(tmp_path)
    wanted = sum(weight.numel() for weight in model.parameters()) * getattr(torch, dtype).itemsize
    assert weight_bytes(tmp_path, "cpu", dtype) == wanted
    (tmp_path / "model.safetensors").unlink()
    assert weight_bytes(tmp_path, "cpu", dtype, here=False) == wanted


def test_the_size_of_a_gguf_file_is_what_it_takes_dequantised(tmp_path: Path) -> None:
    model = tiny("llama")
    wanted = sum(weight.numel() for weight in model.parameters()) * 2
    assert weight_bytes(write(model, tmp_path / "small.gguf"), "cpu", "bfloat16") == wanted


def test_a_good_pair_counts_both_and_its_parts(tmp_path: Path) -> None:
    target, draft, heads = save(tmp_path / "target"), save(tmp_path / "draft"), tmp_path / "heads"
    heads.mkdir()
    (heads / "medusa.safetensors").write_bytes(b"0" * 1000)
    alone = listed(tmp_path, model=target, dtype="float32").check(QUIET)
    pair = listed(tmp_path, model=target, draft=draft, dtype="float32", medusa=str(heads))
    assert pair.check(QUIET) == 2 * alone + 1000


def test_a_model_above_the_budget_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ours = listed(tmp_path, model=save(tmp_path / "target"), dtype="float32")
    assert "ours cannot be loaded: its weights take 0.00 GB" in refused(ours, caplog, budget=1000)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*WORDS[:-1], "zebra"], "first at id 64, which is 'w61' for the target and 'zebra' for the drafter"),
        (["<s>", "<pad>", *WORDS[2:]], "first at id 0, which is '<pad>' for the target and '<s>' for the drafter"),
        (WORDS[:-1], "first at id 64, which is 'w61' for the target and nothing for the drafter"),
    ],
    ids=["a word", "special ids", "fewer"],
)
def test_a_drafter_with_other_tokens_is_refused(
    words: list[str], sentence: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its guesses would be other words."""
    ours = listed(tmp_path, model=save(tmp_path / "target"), draft=save(tmp_path / "draft", words))
    assert f"cannot draft for ours: their tokenizers differ, {sentence}" in refused(ours, caplog)


@pytest.mark.parametrize("part", ["model", "draft"])
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_a_folder_with_code_is_refused(part: str, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What the code would compute, transformers' own model of that type need not."""
    places = {"model": save(tmp_path / "target"), "draft": save(tmp_path / "draft")}
    spoilt = Path(places[part]) / name
    spoilt.write_text(json.dumps(json.loads(spoilt.read_text()) | {"auto_map": {"AutoConfig": "code.Config"}}))
    assert f"{name} in {places[part]!r} names Python code of its own (auto_map)" in refused(
        listed(tmp_path, **places), caplog
    )


def test_pickled_weights_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = Path(save(tmp_path / "target"))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "holds pickled weights only, and those can run code" in refused(listed(tmp_path, model=str(folder)), caplog)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model_type": "novel"}, "knows no models of type 'novel'"),
        ({"model_type": "t5"}, "have an encoder"),
        ({"hidden_size": 10**9}, "hidden_size is 1000000000 in config.json, which no model has"),
    ],
)
def test_a_configuration_that_cannot_be_run_is_refused(
    changes: dict[str, object], sentence: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = Path(folder := save(tmp_path / "target")) / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | changes))
    assert sentence in refused(listed(tmp_path, model=folder), caplog)


def test_a_dtype_that_does_not_exist_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ours = listed(tmp_path, model=save(tmp_path / "target"), dtype="bf16")
    assert "the dtype 'bf16' cannot be used" in refused(ours, caplog)


def test_a_model_of_the_hub_is_refused_before_its_weights_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Only its small files are: 14 GB would take an hour, and the disk."""
    folder, asked = Path(save(tmp_path / "target")), list[bool]()
    with safe_open(folder / "model.safetensors", "pt") as opened:
        assert opened.keys()
    (folder / "model.safetensors").unlink()

    def fetch(place: str, report: Any, *, revision: str | None, weights: bool) -> Path:
        assert (place, revision) == ("org/model", COMMIT)
        asked.append(weights)
        return folder

    monkeypatch.setattr(entry, "fetch", fetch)
    ours = listed(tmp_path, model="org/model", revision=COMMIT)
    assert "all models together may take 0.00 GB here" in refused(ours, caplog, budget=1000)
    assert asked == [False]


def test_a_page_whose_model_fails_runs_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The next visitor's choice must not suffer for it."""
    bad, good = listed(tmp_path, model=save(tmp_path / "target"), dtype="bf16"), CatalogEntry("toy", "toy")
    pool = ModelPool({"ours": bad, "toy": good}, budget=1e9)
    with pytest.raises(ModelError):
        pool.request(bad).wait(60)
    engine = pool.request(good).wait(60)
    assert engine is not None and engine.model.card.name == load("toy").model.card.name
