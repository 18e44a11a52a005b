"""Other implementations, measured on the same weights."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from analysis.bench.methods import bench
from analysis.bench.peers import find_peers
from analysis.bench.peers.llama_cpp import process
from analysis.bench.peers.llama_cpp.weights import precision_of, source_of, unquantised
from analysis.bench.peers.transformers import Stopwatch
from analysis.prompts.tasks import Task
from decoding.errors import ModelError, ParamError
from decoding.gguf.file import GgufFile
from decoding.loader import load
from decoding.smollm2 import NAME
from tests import families
from tests.gguf_writer import write
from tests.test_load import save


@pytest.mark.slow
def test_assisted_modes_write_the_same_text(tmp_path: Path) -> None:
    """In float32 a peer that writes another text decodes something else than what it is compared with."""
    folder, drafter = save(tmp_path / "model"), save(tmp_path / "drafter", num_hidden_layers=1)
    engine = load(folder, device="cpu", dtype="float32", draft=drafter)
    names = ("transformers", "transformers-prompt-lookup", "transformers-draft-model")
    tasks = [Task(1, "prompt", ("w3 w4 w5 w3 w4 w5 w3",)), Task(2, "prompt", ("w7 w8",))]
    report = bench(
        engine, tasks, [], peers=find_peers(names, engine, folder, drafter), max_new_tokens=24, ignore_end=True
    )
    assert [peer["name"] for peer in report["peers"]] == list(names)
    for peer in report["peers"]:
        assert peer["precision"] == "float32" and peer["same_texts"] == 1.0 and peer["tokens_per_second"] > 0


def test_transformers_is_not_measured_against_several_devices(tmp_path: Path) -> None:
    """It would be put on the last of them, where it may not fit."""
    folder = save(tmp_path)
    with pytest.raises(ParamError, match="one device only"):
        find_peers(("transformers",), load(folder, device="cpu,cpu", dtype="float32"), folder, None)


def test_a_step_of_many_tokens_counts_all_of_them() -> None:
    """Assisted modes hand over what a step wrote; its first one is the prompt's."""
    watch = Stopwatch()
    for count in (5, 1, 4):
        watch.put(torch.zeros(count))
    assert watch.counts == [5, 1, 4] and watch.times == sorted(watch.times)


def test_a_draft_model_is_needed_for_assistance(tmp_path: Path) -> None:
    """The sentence says what to do."""
    folder = save(tmp_path / "model")
    with pytest.raises(ParamError, match="needs a drafter"):
        find_peers(["transformers-draft-model"], load(folder, device="cpu", dtype="float32"), folder)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_files_for_llama_cpp_hold_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    """Speeds at one precision are compared: the file must hold the weights that our own engine computes with."""
    from gguf import GGMLQuantizationType

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = write(families.tiny("llama"), tmp_path / "tiny.gguf", GGMLQuantizationType.Q8_0)
    made = unquantised(source, dtype)
    assert precision_of(source) == "Q8_0"
    assert precision_of(made) == {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}[dtype]
    ours, theirs = GgufFile(source), GgufFile(made)
    assert ours.tensors.keys() == theirs.tensors.keys() and ours.architecture == theirs.architecture == "llama"
    for name in ours.tensors:
        assert torch.equal(theirs.get(name, dtype), ours.get(name, dtype))
    for key in ours.metadata.keys() - {"general.file_type"}:
        assert theirs.metadata[key] == ours.metadata[key]
    written = made.stat().st_mtime_ns
    assert unquantised(source, dtype).stat().st_mtime_ns == written  # once


def test_llama_cpp_needs_a_gguf_file(tmp_path: Path) -> None:
    """A folder of safetensors is nothing that it reads."""
    with pytest.raises(ParamError, match="reads GGUF files"):
        source_of(save(tmp_path / "model"))


def test_llama_cpp_that_is_missing_or_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, whether it was never compiled or dies."""
    monkeypatch.setattr(process, "PYTHON", tmp_path / "missing")
    with pytest.raises(ModelError, match="make llama-cpp"):
        process.Process(tmp_path / "model.gguf", 1)
    monkeypatch.setattr(process, "PYTHON", Path(sys.executable))  # which has no llama-cpp-python
    with pytest.raises(ModelError, match="cannot run this model"):
        process.Process(tmp_path / "model.gguf", 1)


compiled = pytest.mark.skipif(not process.PYTHON.is_file(), reason="llama.cpp is not here: make llama-cpp")


@compiled
def test_llama_cpp_refuses_a_damaged_file(tmp_path: Path) -> None:
    """The reason is llama.cpp's own, and no process stays behind."""
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"cannot run this model \(it cannot read the file\)"):
        process.Process(tmp_path / "model.gguf", 1)


@pytest.mark.slow  # loads a model twice; another peer is compared above
@compiled
def test_llama_cpp_writes_our_text(tmp_path: Path) -> None:
    """In float32, on the same prompt and weights, as far as rounding lets greedy texts agree."""
    engine = load(NAME, device="cpu", dtype="float32")
    tasks = [Task(1, "prompt", ("What is the capital of France?",))]
    report = bench(engine, tasks, [], peers=find_peers(["llama.cpp"], engine, NAME), max_new_tokens=24)
    [peer] = report["peers"]
    assert peer["precision"] == "F32" and peer["same_texts"] == 1.0
    json.dumps(report)
