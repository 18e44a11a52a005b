"""Tables that several processes share in memory: each maps the same file."""

from __future__ import annotations

import os
import sys
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa


class SharedTables:
    """Tables in files that other processes of this user can map by their paths, for as long as this object lives."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.paths = {name: _new_file(self) for name in tables}
        for name, table in tables.items():
            with pa.OSFile(self.paths[name], "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
        self.tables = mapped(self.paths)


def mapped(paths: Mapping[str, str]) -> dict[str, pa.Table]:
    """Map the tables in files, without a copy in this process's own memory."""
    return {name: pa.ipc.open_file(pa.memory_map(path)).read_all() for name, path in paths.items()}


def _new_file(owner: object) -> str:
    """Return the path of an empty file that is removed with its owner; on Linux it is in memory, not on a disk."""
    if sys.platform == "linux" and Path("/proc/self/fd").is_dir():
        descriptor = os.memfd_create("specscope-table")
        weakref.finalize(owner, os.close, descriptor)
        return f"/proc/{os.getpid()}/fd/{descriptor}"
    descriptor, path = tempfile.mkstemp(prefix="specscope-table-")
    os.close(descriptor)
    weakref.finalize(owner, _remove, path)
    return path


def _remove(path: str) -> None:
    with suppress(OSError):  # Windows removes no file that is still mapped
        Path(path).unlink()
