"""A stranger's run folder is read by a process that may end without taking the server with it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.store.apart import read_folder_apart
from analysis.store.checks import FolderLimits
from analysis.store.folder import read_folder
from decoding.errors import TraceError
from tests import ROOT
from tests.evaluate.test_folder import made

ABORTS = ROOT / "tests" / "golden" / "evaluate" / "aborts.parquet.gz"
SECONDS, MEMORY = 60.0, 4 * 2**30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path / "runs")


def test_it_gives_what_reading_here_gives(folder: Path) -> None:
    here, apart = read_folder(folder), read_folder_apart(folder, FolderLimits(), SECONDS, MEMORY)
    for name in ("runs", "steps", "nodes", "summary", "path"):
        assert getattr(apart, name) == getattr(here, name), name


def test_a_refusal_is_the_same_sentence(folder: Path) -> None:
    (folder / "steps.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(TraceError) as here:
        read_folder(folder)
    with pytest.raises(TraceError) as apart:
        read_folder_apart(folder, FolderLimits(), SECONDS, MEMORY)
    assert str(apart.value) == str(here.value)


def test_limits_are_the_childs_too(folder: Path) -> None:
    with pytest.raises(TraceError, match="more than the 0 allowed"):
        read_folder_apart(folder, FolderLimits(steps=0), SECONDS, MEMORY)


def test_a_file_that_ends_its_reader_costs_a_sentence(folder: Path) -> None:
    """Four bytes of it are wrong, and pyarrow calls `terminate`: no `except` is asked."""
    (folder / "nodes.parquet").write_bytes(gzip.decompress(ABORTS.read_bytes()))
    code = "import sys; from analysis.store.folder import read_folder; read_folder(sys.argv[1])"
    here = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, capture_output=True, check=False)
    assert here.returncode  # aborted; or refused, by a library that has learnt to
    with pytest.raises(TraceError, match="make it again"):
        read_folder_apart(folder, FolderLimits(), SECONDS, MEMORY)


@pytest.mark.skipif(sys.platform == "win32", reason="memory is bounded by what Unix offers")
def test_time_and_memory_are_bounded(folder: Path) -> None:
    with pytest.raises(TraceError, match=r"longer than 0\.001 seconds"):
        read_folder_apart(folder, FolderLimits(), 0.001, MEMORY)
    with pytest.raises(TraceError, match="make it again"):
        read_folder_apart(folder, FolderLimits(), SECONDS, 2**20)
