"""A process's tables are another one's too, without a copy."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from analysis.store.shared_tables import SharedTables, mapped
from tests import ROOT

from .made_tables import made_tables


def test_another_process_maps_the_same_tables() -> None:
    tables = made_tables()
    shared = SharedTables(tables)
    assert shared.tables == tables
    code = "import json, sys; from analysis.store.shared_tables import mapped; "
    code += "print(mapped({'nodes': sys.argv[1]})['nodes']['text'].to_pylist())"
    done = subprocess.run(
        [sys.executable, "-c", code, shared.paths["nodes"]], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(tables["nodes"]["text"].to_pylist())


def test_mapping_copies_nothing() -> None:
    """A million guesses take 300 MB, and every query maps them."""
    shared = SharedTables({"t": pa.table({"a": range(1_000_000)})})
    before = pa.total_allocated_bytes()
    assert mapped(shared.paths)["t"].nbytes == 8_000_000 and pa.total_allocated_bytes() - before < 100_000


def test_nothing_is_left_of_tables_that_nobody_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What still reads them can go on; a folder that its visitors have left must not stay on the disk."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shared = SharedTables({"t": pa.table({"a": [1, 2, 3]})})
    table, path = shared.tables["t"], shared.paths["t"]
    assert sys.platform != "linux" or not list(tmp_path.iterdir())
    del shared
    gc.collect()
    assert table["a"].to_pylist() == [1, 2, 3]
    assert sys.platform == "win32" or not Path(path).exists()
