"""The built-in list of models: what it offers, and what a visitor reads where a model cannot be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.models import catalog, entry
from app.models.catalog import default_catalog
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from decoding import load, smollm2
from decoding.errors import ModelError, ModelMissingError
from tests.families import tiny
from tests.gguf_writer import write

QUIET = lambda what, share: None  # noqa: E731


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend a machine that has fetched nothing."""
    monkeypatch.setattr(catalog, "fetched", lambda *arguments, **options: None)
    monkeypatch.setattr(entry, "fetched", lambda *arguments, **options: None)
    monkeypatch.setattr(smollm2, "fetched", lambda *arguments, **options: None)


def test_the_list_begins_with_the_best_that_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer meets English where it can be had, and pocket works everywhere; a large model has to fit."""
    monkeypatch.setattr(catalog, "machine_memory", lambda: 2e12)
    monkeypatch.setattr(smollm2, "packaged", lambda: None)
    assert list(default_catalog()) == ["pocket", "pocket-medusa-2", "pocket-slow-drafter", "SmolLM2 135M"]
    monkeypatch.setattr(smollm2, "packaged", lambda: Path("SmolLM2.gguf"))
    assert list(default_catalog()) == ["SmolLM2 135M", "pocket", "pocket-medusa-2", "pocket-slow-drafter"]
    assert list(default_catalog(download=True))[4:] == ["SmolLM2 1.7B", "Mistral 7B", "Qwen3 8B"]
    monkeypatch.setattr(catalog, "machine_memory", lambda: 16e9)
    assert list(default_catalog(download=True))[4:] == ["SmolLM2 1.7B"]
    monkeypatch.setattr(catalog, "fetched", lambda *arguments, **options: Path())
    assert list(default_catalog())[4:] == ["SmolLM2 1.7B"]


def test_no_click_of_a_visitor_fetches_what_the_owner_did_not_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says how to get the model, and goes to the visitor as it is."""

    def refuse(*arguments: Any, **options: Any) -> Path:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(smollm2, "packaged", lambda: None)
    monkeypatch.setattr(smollm2, "fetch", refuse)
    monkeypatch.setattr(entry, "fetch", refuse)
    smol = default_catalog()["SmolLM2 135M"]
    with pytest.raises(ModelMissingError, match="^SmolLM2 135M is not on this machine: get it with `make real`"):
        ModelPool({smol.name: smol}).request(smol).wait(60)
    large = CatalogEntry("ours", "org/model", "0123456789" * 4, download=False)
    with pytest.raises(ModelMissingError, match="ours is not on this machine"):
        large.load(QUIET)


def test_a_gguf_file_stands_in_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record has the catalog's name, and nothing of where the file lies."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write(tiny("llama"), tmp_path / "secret-place.gguf")
    listed = tmp_path / "models.toml"
    listed.write_text(f"[[model]]\nname = 'ours'\nmodel = '{path}'\ndtype = 'float32'\n")
    engine = catalog.read_catalog(listed).models["ours"].load(QUIET)
    assert engine.model.card.name == "ours"
    header = engine.generate([3, 4], max_new_tokens=2).trace.header
    assert header.model.name == "ours" and "secret" not in str(header)


def test_models_of_folders_are_named_without_them(tmp_path: Path) -> None:
    """Also where no catalog renames them."""
    folder = tmp_path / "secret" / "my-model"
    tiny("llama").save_pretrained(folder)
    trace = load(str(folder), dtype="float32").generate([3, 4], max_new_tokens=2).trace
    assert trace.header.model.name == "my-model" and "secret" not in str(trace.header)


def test_a_file_that_is_no_model_is_refused_in_the_log_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What the owner must mend is in the owner's log."""
    (tmp_path / "bad.gguf").write_bytes(b"nonsense")
    bad = CatalogEntry("ours", str(tmp_path / "bad.gguf"))
    with pytest.raises(ModelError, match="ours cannot be loaded on this server now"):
        ModelPool({"ours": bad}).request(bad).wait(60)
    assert "is no GGUF file" in caplog.text
