"""Reads a stranger's run folder in a process of its own.

What unpacks Parquet is C++, and some damaged files end the process that reads them: no `except` helps there. So a
server that takes files from anybody leaves the reading to a child, with bounded time and memory, and takes over what it
has checked and written down anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from ..errors import SpecscopeError, TraceError
from .checks import FolderLimits
from .folder import RunFolder, read_folder, read_summary
from .schema import SCHEMAS

_PACKAGES = Path(__file__).parents[2]  # where the child finds this one
_DAMAGED = "a file of the run folder is damaged so badly that its reader ended: make it again"


def read_folder_apart(folder: Path, limits: FolderLimits, seconds: float, memory: int) -> RunFolder:
    """What `read_folder` reads, in a child that may take so many seconds and bytes; raises TraceError."""
    with tempfile.TemporaryDirectory() as place:
        task = json.dumps({"folder": str(folder), "place": place, "limits": asdict(limits), "memory": memory})
        path = os.pathsep.join(filter(None, (str(_PACKAGES), os.environ.get("PYTHONPATH"))))
        try:
            done = subprocess.run(
                [sys.executable, "-m", __name__],
                input=task.encode(),
                env=os.environ | {"PYTHONPATH": path},
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TraceError(f"reading it takes longer than {seconds:g} seconds: bring a smaller run folder") from None
        if done.returncode:
            raise TraceError(_DAMAGED)
        if done.stdout:
            raise TraceError(done.stdout.decode(errors="replace"))
        runs, steps, nodes = (_load(Path(place) / name) for name in SCHEMAS)
        return RunFolder(folder, runs, steps, nodes, read_summary(folder))


def _load(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.read_all()


def _main() -> None:
    """The child: the tables into files, or the sentence that says why not."""
    task = json.load(sys.stdin)
    with suppress(ImportError, ValueError, OSError):  # elsewhere than on Unix, or where less is allowed already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (task["memory"], task["memory"]))
    try:
        folder = read_folder(task["folder"], FolderLimits(**task["limits"]))
    except SpecscopeError as error:
        sys.stdout.write(str(error))
        return
    for name, table in zip(SCHEMAS, (folder.runs, folder.steps, folder.nodes), strict=True):
        with pa.OSFile(str(Path(task["place"]) / name), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)


if __name__ == "__main__":
    _main()
