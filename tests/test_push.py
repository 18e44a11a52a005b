"""What a host of git repositories refuses is not in this one, and the way onto a Space in docs/hosting.md works."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
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


def space_commands() -> list[str]:
    """Return what docs/hosting.md tells a host to type."""
    section = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8").split("## On a Hugging Face Space\n")[1]
    block = re.search(r"^```console\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


@pytest.mark.slow  # a clone of everything, for a command that is typed once
def test_the_snapshot_is_the_whole_page_without_history(tmp_path: Path) -> None:
    """The first of its commands, run in a clone: what it leaves can be taken, and starts from."""
    clone = tmp_path / "clone"
    git("clone", "--quiet", str(ROOT), str(clone))
    command = space_commands()[0]
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=clone, check=True, timeout=60)
    snapshot = tmp_path / "space"
    names = {str(path.relative_to(snapshot)) for path in snapshot.rglob("*") if path.is_file()}
    assert names == set(git("ls-files", "-z", cwd=clone).split("\0")) - {""}
    assert max(path.stat().st_size for path in snapshot.rglob("*")) <= LARGEST
    # Committed anew it has no past, and nothing in it is too large.
    git("init", "--quiet", cwd=snapshot)
    git("add", "--all", "--force", cwd=snapshot)
    who = ("-c", "user.name=host", "-c", "user.email=host@example.org")
    git(*who, "commit", "--quiet", "--message", "Snapshot", cwd=snapshot)
    sizes = git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectsize)", cwd=snapshot)
    blobs = [int(line.split()[1]) for line in sizes.splitlines() if line.startswith("blob")]
    assert len(blobs) > 300 and max(blobs) <= LARGEST


def test_the_upload_is_spelt_as_its_program_wants_it(tmp_path: Path) -> None:
    """Without a network it comes as far as the first question to the hub, and no further."""
    command = space_commands()[1]
    words = shlex.split(command)
    assert words[0] == ".venv/bin/hf" and words[words.index("--repo-type") + 1] == "space"
    (tmp_path / "space").mkdir()
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    program = Path(sys.executable).with_name("hf")
    done = subprocess.run(
        [str(program), *words[1:]], cwd=tmp_path / "space", env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0 and "offline" in (done.stdout + done.stderr).lower(), done.stderr
