"""What a host of git repositories refuses is not in this one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from decoding.embedded import FOLDERS
from decoding.model.loading import load_model

from . import ROOT

LARGEST = 10_000_000  # bytes of a file, on Hugging Face
POINTER = b"version https://git-lfs.github.com/spec/"
# The models as the recorded runs and the golden traces name them: how their files are cut must not show.
HASHES = {"pocket": "4d7f9611c9b74d47", "pocket-medusa-2": "a355bd7f2736f158"}

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")


def git(*words: str, cwd: Path = ROOT) -> str:
    return subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True, check=True).stdout


def tracked() -> list[Path]:
    return [ROOT / name for name in git("ls-files", "-z").split("\0") if name and (ROOT / name).is_file()]


def test_no_file_is_too_large_or_only_a_pointer_to_one() -> None:
    assert not [str(path) for path in tracked() if path.stat().st_size > LARGEST]
    for path in tracked():
        with path.open("rb") as file:
            assert not file.read(len(POINTER)).startswith(POINTER), path


@pytest.mark.parametrize("name", HASHES)
def test_the_models_are_the_ones_that_records_name(name: str) -> None:
    assert load_model(str(FOLDERS[name]), "cpu", "float32").card.hash.startswith(HASHES[name])
    assert (FOLDERS[name] / "model.safetensors.index.json").is_file()
    assert not (FOLDERS[name] / "model.safetensors").exists()
