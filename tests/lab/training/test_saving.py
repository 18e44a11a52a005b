"""A trained model's folder: files that every host takes, and nothing left of an earlier training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from decoding.model.loading import load_model
from lab.training import saving
from lab.training.saving import save_model, weight_bytes
from tests.families import tiny

KIB = 1024


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("model*"))


def test_a_small_model_is_cut_and_each_form_replaces_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers reads a whole file before shards, and ours the other way round: both must find the last training."""
    ours = set()
    for seed, most in enumerate((10**9, 20 * KIB, 60 * KIB, 10**9)):
        monkeypatch.setattr(saving, "_FILE", most)
        model = tiny("mistral", seed=seed)
        save_model(model, tmp_path)
        assert weight_bytes(tmp_path) >= sum(weight.numel() * 4 for weight in model.parameters())
        if most == 10**9:
            assert files(tmp_path) == ["model.safetensors"]
        else:
            assert all(path.stat().st_size <= most + 4 * KIB for path in tmp_path.glob("model-*.safetensors"))
            assert files(tmp_path)[-1] == "model.safetensors.index.json" and len(files(tmp_path)) > 2
        theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).state_dict()
        assert all(torch.equal(weight, theirs[name]) for name, weight in model.state_dict().items())
        ours.add(load_model(str(tmp_path), "cpu", "float32").card.hash)
    assert len(ours) == 4


def test_a_large_model_keeps_the_shards_that_its_readers_expect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a model of 14 GB, pieces of 8 MB would be 1,800 files."""
    monkeypatch.setattr(saving, "_FILE", 20 * KIB)
    monkeypatch.setattr(saving, "_SMALL", 10 * KIB)
    save_model(tiny("mistral"), tmp_path)
    assert files(tmp_path) == ["model.safetensors"]
