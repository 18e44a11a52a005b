"""Reads an untrusted run folder in a separate process.

Parquet is unpacked by C++ code, and some damaged files end the process that reads them: no `except` helps there. So a
server that accepts files from anybody reads them in a child, with limited time and memory, and uses what the child has
checked and written again.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from decoding.errors import TraceError

from ..child_process import ChildAnswer, ChildProcess, serve
from .checks import FolderLimits
from .folder import RunFolder, read_folder, read_summary
from .schema import SCHEMAS

_DAMAGED = "a file of the run folder is damaged so badly that its reader ended: make it again"


def read_folder_apart(folder: Path, limits: FolderLimits, seconds: float, memory: int) -> RunFolder:
    """Read a folder as `read_folder` does, in a child with a limit of seconds and bytes; raises TraceError."""
    with tempfile.TemporaryDirectory() as place, ChildProcess(__name__, memory, TraceError) as child:
        try:
            child.ask({"folder": str(folder), "place": place, "limits": asdict(limits)}, seconds)
        except TimeoutError:
            raise TraceError(f"reading it takes longer than {seconds:g} seconds: bring a smaller run folder") from None
        except EOFError:
            raise TraceError(_DAMAGED) from None
        runs, steps, nodes = (_load(Path(place) / name) for name in SCHEMAS)
        return RunFolder(folder, runs, steps, nodes, read_summary(folder))


def _load(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.read_all()


def _read(request: Any) -> ChildAnswer:
    """Read a folder in the child; the tables go into files."""
    folder = read_folder(request["folder"], FolderLimits(**request["limits"]))
    for name, table in zip(SCHEMAS, (folder.runs, folder.steps, folder.nodes), strict=True):
        with pa.OSFile(str(Path(request["place"]) / name), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return {}, b""


if __name__ == "__main__":
    serve(_read)
