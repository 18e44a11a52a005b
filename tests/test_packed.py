"""Packed files: the very bytes of the files in whose place they are, and nothing of a damaged or hostile one."""

from __future__ import annotations

import json
import lzma
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from analysis.plain_folder import plain_folder
from decoding.model.files import TensorFiles
from decoding.packed import ASSETS, LARGEST, SUFFIX, open_tensors, stored, unpack
from tools.pack_assets import PACKED, pack

# Of SHA-256 over names, types, shapes and bytes of all tensors of a file the first half, from when they were plain.
TENSORS = {
    "pocket/datastore.safetensors": "560c53dac471e760414a95da30e1f74d",
    "pocket/dflash/model.safetensors": "ccb13760d7cf444cd4584acb2206146d",
    "pocket/eagle/model.safetensors": "0fc9a1d2cb429d029e7ebb1c368be0bf",
    "pocket/kangaroo/adapter.safetensors": "7dc29b783c3e67f5549d59142f709e10",
    "pocket/medusa/medusa_lm_head.safetensors": "109ec3f67df4145c0e0377168d672ca9",
    "pocket/medusa-2/backbone/model-00001-of-00002.safetensors": "2467803e60965f9749a3643bd1d810c1",
    "pocket/medusa-2/backbone/model-00002-of-00002.safetensors": "d746e646fc82408761e5084a61716408",
    "pocket/medusa-2/medusa_lm_head.safetensors": "3c0c638e7f030629b4aebbeca40b64ad",
    "samples/slow-drafter/model.safetensors": "0fc9a1d2cb429d029e7ebb1c368be0bf",
    "smollm2/datastore.safetensors": "1a4fc78f985c485e0067589553809ba3",
    "smollm2/dflash/model.safetensors": "64005eb98f9ef984b2bfe1356396654d",
    "smollm2/drafter/model-00001-of-00002.safetensors": "4963557ccf49b697ad84fc2ec00bc9b0",
    "smollm2/drafter/model-00002-of-00002.safetensors": "fb9917afd7f8bcf6f79fa25104765aed",
    "smollm2/drafter/vocabulary.safetensors": "4a0c9a5c00a7b3b4bd18464d2b87691a",
    "smollm2/eagle/model.safetensors": "2d39920493798f14887e495dd907b813",
    "smollm2/kangaroo/adapter.safetensors": "812bbc67fe77eecb5253c8a47a7a6eb2",
    "smollm2/kangaroo/vocabulary.safetensors": "4a0c9a5c00a7b3b4bd18464d2b87691a",
    "smollm2/medusa/medusa_lm_head.safetensors": "425518acb80538da54271c28178e5676",
    "smollm2/medusa/vocabulary.safetensors": "4a0c9a5c00a7b3b4bd18464d2b87691a",
    "smollm2/tables.safetensors": "64194b5ea5320738b6e775defe73ca5f",
}


@pytest.mark.parametrize("content", [b"\0", b"odd", b"", bytes(range(256)) * 9, Random(1).randbytes(999)], ids=len)
def test_the_bytes_come_back(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"file{SUFFIX}"
    path.write_bytes(pack(content))
    if content:
        assert unpack(path) == content
    else:  # no file that is read so is empty
        with pytest.raises(SafetensorError):
            unpack(path)


def test_what_a_base_has_too_is_hardly_stored(tmp_path: Path) -> None:
    name = "pocket/drafter/model.safetensors"
    base = (ASSETS / name).read_bytes()
    near = bytearray(base)
    near[-1] ^= 1
    packed = pack(bytes(near), name, base)
    (tmp_path / f"file{SUFFIX}").write_bytes(packed)
    assert unpack(tmp_path / f"file{SUFFIX}") == near and len(packed) < len(base) / 100


def digest(file: Any) -> str:
    sums = sha256()
    for name in sorted(file.keys()):
        part, tensor = file.get_slice(name), file.get_tensor(name).contiguous()
        assert list(tensor.shape) == part.get_shape() and torch.equal(part[:1], tensor[:1])
        sums.update(f"{name} {part.get_dtype()} {part.get_shape()}".encode())
        sums.update(tensor.view(torch.uint8).numpy().tobytes())
    return sums.hexdigest()


def test_the_weights_that_ship_are_the_ones_that_were_trained() -> None:
    """Bit by bit."""
    packed = {path.relative_to(ASSETS).as_posix() for path in ASSETS.rglob(f"*.safetensors{SUFFIX}")}
    here = {name for name in TENSORS if (ASSETS / name).parent.is_dir()}  # a copy may leave SmolLM2's parts out
    assert packed == {f"{name}{SUFFIX}" for name in here}
    for name in here:
        with open_tensors(stored(ASSETS / name)) as file:
            assert digest(file).startswith(TENSORS[name]), name


def test_all_that_should_be_packed_is() -> None:
    """A training puts plain files beside the packed ones, and these are then old: tools/pack_assets.py packs them."""
    assert not [path for pattern in PACKED for path in ASSETS.glob(pattern)]


def test_a_packed_file_reads_as_a_plain_one(tmp_path: Path) -> None:
    """Shapes, types, metadata, slices; and the plain one wins, since a training writes plain ones."""
    tensors = {
        "weight": torch.randn(5, 3).bfloat16(),
        "ids": torch.arange(7),
        "flags": torch.tensor([True, False, True]),
        "none": torch.empty(0, 4),
    }
    plain = tmp_path / "model.safetensors"
    save_file(tensors, plain, {"format": "pt"})
    packed = tmp_path / f"model.safetensors{SUFFIX}"
    packed.write_bytes(pack(plain.read_bytes()))
    assert stored(plain) == plain
    with open_tensors(packed) as ours, safe_open(plain, framework="pt") as theirs:
        assert digest(ours) == digest(theirs)
        assert sorted(ours.keys()) == sorted(theirs.keys()) and ours.metadata() == theirs.metadata()
    plain.unlink()
    assert stored(plain) == packed
    with TensorFiles(tmp_path) as files:
        assert torch.equal(files.get("weight"), tensors["weight"]) and files.dtypes["ids"] == "I64"
    with plain_folder(tmp_path) as folder:
        assert [path.name for path in folder.iterdir()] == ["model.safetensors"]
        with safe_open(folder / "model.safetensors", framework="pt") as theirs:
            assert torch.equal(theirs.get_tensor("ids"), tensors["ids"])
    assert not folder.exists()


def changed(**facts: Any) -> Callable[[bytes], bytes]:
    def change(packed: bytes) -> bytes:
        line, _, parts = packed.partition(b"\n")
        return json.dumps(json.loads(line) | facts).encode() + b"\n" + parts

    return change


def with_part(codec: str, part: bytes) -> Callable[[bytes], bytes]:
    """Return what puts one part in the place of all."""
    change = changed(parts=[[codec, 0, len(part)]])
    return lambda packed: change(packed.split(b"\n")[0] + b"\n" + part)


def greedy(content: bytes) -> bytes:
    """Return what takes 256 MiB of memory to read."""
    return lzma.compress(content, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 2**28}])


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda packed: b"",
    "no JSON": lambda packed: b"{" + packed,
    "deep JSON": lambda packed: b"[" * 4000 + packed,
    "no object": lambda packed: b"7\n",
    "a long line": lambda packed: b" " * 2**13 + packed,
    "cut short": lambda packed: packed[:-9],
    "another byte": lambda packed: packed[:-40] + bytes([packed[-40] ^ 1]) + packed[-39:],
    "larger than allowed": changed(bytes=LARGEST + 1),
    "less than nothing": changed(bytes=-2),
    "another size": changed(bytes=62),
    "a size in words": changed(bytes="64"),
    "no parts": changed(parts=[]),
    "parts of words": changed(parts=["ab", "cd"]),
    "parts elsewhere": changed(parts=[["zlib", 10**9, 10**12]]),
    "parts before": changed(parts=[["zlib", -5, 10**30]]),
    "another codec": changed(parts=[["pickle", 0, 20]]),
    "a bomb": lambda packed: with_part("zlib", zlib.compress(bytes(2**24)))(packed),
    "an xz bomb": lambda packed: with_part("xz", lzma.compress(bytes(2**24)))(packed),
    "xz with much memory": lambda packed: with_part("xz", greedy(b"x" * 64))(packed),
    "another hash": changed(sha256="0" * 64),
    "a base outside": changed(base="../README.md"),
    "an absolute base": changed(base="/etc/hostname"),
    "a base of another size": changed(base="pocket/tasks.jsonl"),
    "a base of a base": changed(base="samples/slow-drafter/model.safetensors"),
    "a base in numbers": changed(base=7),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_files_are_refused_as_damaged_ones_are(how: str, tmp_path: Path) -> None:
    path = tmp_path / f"model.safetensors{SUFFIX}"
    path.write_bytes(HOSTILE[how](pack(Random(7).randbytes(64))))
    with pytest.raises(SafetensorError, match="is damaged"):
        unpack(path)
