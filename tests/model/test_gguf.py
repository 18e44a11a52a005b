"""GGUF files: read as transformers reads them, converted once, and bad ones refused in one sentence."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf import GGMLQuantizationType as Kind

from decoding.errors import ModelError
from decoding.gguf import manifest
from decoding.gguf.file import GgufFile
from decoding.model.decoder import Decoder
from decoding.model.files import find_folder, public_name
from decoding.model.loading import decoder_of, load_model
from tests.families import tiny
from tests.gguf_writer import write
from tests.model.texts import chain, text

# A model per architecture whose every matrix has rows of whole blocks, so that all of them are quantised.
WIDE = {"hidden_size": 64, "intermediate_size": 96, "vocab_size": 67}
ARCHITECTURES = ["llama", "llama-biased", "llama-wide-heads", "qwen2", "qwen3", "phi3", "phi3-partial"]
YARN = {"rope__scaling__type": "yarn", "rope__scaling__factor": 4.0, "rope__scaling__original_context_length": 64}
LLAMA_3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_theta": 5e5,
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a user's cache that nobody else has."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "specscope" / "gguf"


def logits(decoder: Decoder, tokens: int = 40) -> torch.Tensor:
    session = decoder.open(64, 64)
    session.reset(tokens)
    return session.read(text(tokens), chain(tokens)).logits


def in_transformers(path: Path) -> torch.Tensor:
    """Return the logits of transformers' own way with the file."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent,
        gguf_file=path.name,
        dtype=torch.float32,
        quantization_config=transformers.GgufConfig(dequantize=True),
    )
    with torch.no_grad():
        result: torch.Tensor = model(torch.tensor([text(40)])).logits[0]
    return result


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_file_holds_the_model_that_was_written(name: str, tmp_path: Path) -> None:
    """llama.cpp orders the rows of Llama's queries and keys in its own way: one order mistaken, and all is nonsense."""
    model = tiny(name, rms_norm_eps=1e-5)
    path = write(model, tmp_path / "model.gguf")
    loaded = load_model(str(path), dtype="float32")
    torch.testing.assert_close(logits(loaded), logits(decoder_of(model)), rtol=0.0, atol=0.0)
    assert (loaded.card.family, loaded.card.name) == (model.config.model_type, "model")


@pytest.mark.sampled
@pytest.mark.parametrize(
    "kind", [Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_1], ids=lambda k: k.name
)
@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_logits_are_those_of_transformers(name: str, kind: Kind, tmp_path: Path) -> None:
    """Two readers of the same file must see the same model."""
    path = write(tiny(name, **WIDE), tmp_path / "model.gguf", kind)
    ours = logits(load_model(str(path), dtype="float32"))
    torch.testing.assert_close(ours, in_transformers(path), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "changes", "keys"),
    [
        ("llama", {"rope_parameters": LLAMA_3, "max_position_embeddings": 16384}, {}),
        ("linear", {}, {"rope__scaling__type": "linear", "rope__scaling__factor": 4.0}),
        ("yarn", {}, YARN),
    ],
    ids=["llama3", "linear", "yarn"],
)
def test_scaled_rotary_embeddings(name: str, changes: dict[str, Any], keys: dict[str, Any], tmp_path: Path) -> None:
    """transformers drops these from a file, and the model would lose its way in a long text without a word."""
    model = tiny(name, **changes)
    loaded = load_model(str(write(model, tmp_path / "model.gguf", **keys)), dtype="float32")
    torch.testing.assert_close(logits(loaded), logits(decoder_of(model)), rtol=1e-4, atol=1e-4)


def test_a_file_is_converted_once_for_each_dtype(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second start must read what the first one wrote; the model's hash must not depend on the dtype."""
    path = write(tiny("llama", **WIDE), tmp_path / "model.gguf", Kind.Q8_0)
    messages: list[str] = []
    first = load_model(str(path), dtype="bfloat16", progress=lambda what, share: messages.append(what))
    assert "converting weights" in messages and len(list(cache.iterdir())) == 1

    def refuse(*arguments: object) -> None:
        raise AssertionError("dequantised again")

    monkeypatch.setattr(GgufFile, "get", refuse)
    second = load_model(str(path), dtype="bfloat16")
    assert torch.equal(logits(first), logits(second))
    assert find_folder(str(path), lambda what, share: None) == next(cache.iterdir())
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert load_model(str(path), dtype="float32").card.hash == first.card.hash
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("model-00001.safetensors", lambda data: data[: len(data) // 2]),
        ("model-00001.safetensors", lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        ("config.json", lambda data: b"{"),
        ("model.safetensors.index.json", None),
        ("manifest.json", lambda data: b"{"),
    ],
    ids=["cut", "another number", "no JSON", "missing", "manifest"],
)
def test_a_damaged_folder_is_made_again(
    name: str,
    damage: Callable[[bytes], bytes] | None,
    tmp_path: Path,
    cache: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A full disk or a power failure must not make every later run fail, and the user fetch the model again."""
    path = write(tiny("llama"), tmp_path / "model.gguf")
    expected = logits(load_model(str(path), dtype="float32"))
    (folder,) = cache.iterdir()
    if damage is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(damage((folder / name).read_bytes()))
    for _ in range(2):
        assert torch.equal(logits(load_model(str(path), dtype="float32")), expected)
    (line,) = warnings_of(caplog)
    assert "damaged" in line and "model.gguf is converted again" in line and "\n" not in line


def test_files_are_hashed_again_only_where_their_time_changed(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Gigabytes are not read at every start; a copy of the folder, whose times are new, is hashed once."""
    path = write(tiny("llama"), tmp_path / "model.gguf")
    load_model(str(path), dtype="float32")
    hashed, digest = list[str](), manifest._digest
    monkeypatch.setattr(manifest, "_digest", lambda path: (hashed.append(path.name), digest(path))[1])
    load_model(str(path), dtype="float32")
    assert not hashed
    os.utime(next(cache.iterdir()) / "model-00001.safetensors", (1, 1))
    for _ in range(2):
        load_model(str(path), dtype="float32")
    assert hashed == ["model-00001.safetensors"] and not warnings_of(caplog)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the converter said; the package that writes the test's file logs too."""
    return [record.getMessage() for record in caplog.records if record.name == "decoding.gguf.folder"]


CONVERTS = """
import os, sys
from decoding.gguf import manifest
from decoding.gguf.file import GgufFile
from decoding.model.files import find_folder
def wait(*arguments):
    print("writes", flush=True)
    sys.stdin.read()
GgufFile.get = wait
find_folder(sys.argv[1], lambda what, share: None)
"""


@pytest.mark.slow  # processes of its own
@pytest.mark.skipif(sys.platform == "win32", reason="who writes is known by locks that Unix has")
def test_what_a_killed_process_has_left_is_removed_and_a_living_ones_is_not(tmp_path: Path, cache: Path) -> None:
    """Two servers may share a cache, and each kill would leave gigabytes."""
    path = write(tiny("llama"), tmp_path / "model.gguf")
    command = [sys.executable, "-c", CONVERTS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "writes\n"
        (unfinished,) = cache.glob("unfinished-*")
        load_model(str(path), dtype="float32")
        assert unfinished.is_dir()
        process.kill()
    load_model(str(path), dtype="float32")
    assert not list(cache.glob("unfinished-*")) and len(list(cache.iterdir())) == 1


def test_a_changed_file_is_another_model(tmp_path: Path) -> None:
    """A file of the same name and size must not be answered for by the folder of the old one."""
    path = write(tiny("llama"), tmp_path / "model.gguf")
    old = load_model(str(path), dtype="float32")
    write(tiny("llama", seed=1), path)
    new = load_model(str(path), dtype="float32")
    assert old.card.hash != new.card.hash and not torch.equal(logits(old), logits(new))


def test_large_weights_go_into_several_files(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is not held in memory twice while it is converted."""
    monkeypatch.setattr("decoding.gguf.folder._SHARD", 10_000)
    monkeypatch.setattr("decoding.gguf.file._CHUNK", 100)
    model = tiny("llama")
    loaded = load_model(str(write(model, tmp_path / "model.gguf")), dtype="float32")
    assert len(list(next(cache.iterdir()).glob("*.safetensors"))) > 2
    assert torch.equal(logits(loaded), logits(decoder_of(model)))


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path, cache: Path) -> None:
    """A download that broke off must be called that, and leave nothing behind."""
    whole = write(tiny("llama"), tmp_path / "whole.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    for size in [0, 3, 4, 11, 30, 200, 1000, 2000, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(ModelError, match=r"damaged or cut short|it is empty|is no GGUF file"):
            load_model(str(path), dtype="float32")
    assert not cache.exists() or not list(cache.iterdir())


def test_damage_in_the_header_never_shows_a_traceback(tmp_path: Path) -> None:
    """Whatever a file claims, it is loaded or refused in a sentence, and no claim makes this machine run out."""
    whole = write(tiny("llama"), tmp_path / "whole.gguf").read_bytes()
    path, chance, refused = tmp_path / "bad.gguf", random.Random(0), 0
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(4, 3500)
            size = chance.choice([1, 4, 8])
            data[place : place + size] = chance.choice([b"\0", b"\xff", b"\x7f", b"\x80"]) * size
        path.write_bytes(data)
        try:
            load_model(str(path), dtype="float32")
        except ModelError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 50


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"PK\x03\x04" + b"\0" * 100, "is no GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "GGUF version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "GGUF version"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 1), "damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**60), "damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "GGUF models of type '' cannot be run"),
    ],
)
def test_foreign_and_hostile_files(data: bytes, sentence: str, tmp_path: Path) -> None:
    """Each is refused for what it is."""
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=sentence):
        load_model(str(path))


def test_another_architecture_is_named(tmp_path: Path) -> None:
    """The reader of the sentence learns which families there are."""
    model = tiny("llama")
    path = write(model, tmp_path / "model.gguf")
    path.write_bytes(path.read_bytes().replace(b"llama", b"gemma"))
    with pytest.raises(ModelError, match="type 'gemma' cannot be run; supported are llama"):
        load_model(str(path))


def test_rotary_embeddings_that_are_not_understood_are_refused(tmp_path: Path) -> None:
    """A model that is read with the wrong frequencies writes well for a while."""
    path = write(tiny("llama"), tmp_path / "a.gguf", rope__scaling__type="longrope")
    with pytest.raises(ModelError, match="scales its rotary embedding in a way that"):
        load_model(str(path))
    path = write(tiny("llama3"), tmp_path / "b.gguf")  # the rule's context is 32 there, and not Llama 3's
    with pytest.raises(ModelError, match="by a rule that is not Llama 3's"):
        load_model(str(path))


def test_a_folder_of_files_says_to_name_one(tmp_path: Path) -> None:
    """People fetch folders with several quantisations."""
    write(tiny("llama"), tmp_path / "model-q8.gguf")
    with pytest.raises(ModelError, match=r"name its GGUF file itself, such as model-q8\.gguf"):
        load_model(str(tmp_path))


def test_a_full_disk_and_a_missing_cache_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights need a place, and the sentence names the way to another one."""
    path = write(tiny("llama"), tmp_path / "model.gguf")
    monkeypatch.setattr("shutil.disk_usage", lambda place: type("Usage", (), {"free": 10})())
    with pytest.raises(ModelError, match="free some, or set XDG_CACHE_HOME"):
        load_model(str(path))
    monkeypatch.setattr("decoding.gguf.folder.user_cache", lambda: None)
    with pytest.raises(ModelError, match="set XDG_CACHE_HOME"):
        load_model(str(path))


def test_public_names_hide_folders(tmp_path: Path) -> None:
    """A record is shared; where its model lay is nobody's business."""
    (tmp_path / "my-model").mkdir()
    path = write(tiny("llama"), tmp_path / "other.gguf")
    assert public_name(str(tmp_path / "my-model")) == "my-model"
    commit = tmp_path / "models--org--other-model" / "snapshots" / ("0" * 40)
    commit.mkdir(parents=True)
    assert public_name(str(commit)) == "org/other-model", "a drafter for it would be taken for another model's"
    assert public_name(str(path)) == "other"
    assert [public_name(name) for name in ("pocket", "org/model", "x" * 5000)] == ["pocket", "org/model", "x" * 5000]
