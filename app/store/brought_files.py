"""Reads the files that a visitor drops on the Debug tab as one run folder. All of them are untrusted.

A run folder comes as a zip file or as its files; anything else is read by `analysis.imports`: records of other engines,
and traces. Nothing is unpacked beyond the limits, and no file is written under a name that a visitor chose.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from analysis.imports import merged, read_any, recognise
from analysis.imports.traces import NAME as TRACE
from analysis.store.apart import read_folder_apart
from analysis.store.checks import FolderLimits
from analysis.store.folder import SUMMARY, RunFolder
from analysis.store.schema import SCHEMAS, VERSION
from decoding.errors import SpecscopeError, TraceError
from decoding.trace.lines import CutOffError, Limits, lines

from ..controls import without_surrogates
from ..server.limits import LIMITS

_FILES = {**{f"{name}.parquet": name for name in SCHEMAS}, SUMMARY: "summary"}
_MOST_FILES = 12
_MOST_MEMBERS = 2_000
_FOLDER = FolderLimits(
    summary_bytes=2**20,
    file_bytes=LIMITS.brought_bytes,
    runs=20_000,
    steps=200_000,
    nodes=1_000_000,
    ids=2**23,
    text_bytes=LIMITS.brought_bytes,
)


def read_files(asked: object) -> tuple[str, RunFolder]:
    """Return the name and the contents of a run folder, from a list of names and contents in base64."""
    files = _decoded(asked)
    name = " + ".join(files)[:80]
    try:
        if len(files) == 1 and (data := next(iter(files.values()))).startswith(b"PK\x03\x04"):
            return name, _folder(_unzipped(data))
        named = {PurePosixPath(each).name: data for each, data in files.items()}
        if any(each.endswith(".parquet") for each in named):
            return name, _folder(named)
        return name, _imported(files)
    except (SpecscopeError, RecursionError, MemoryError) as error:
        reason = str(error) if isinstance(error, SpecscopeError) else "it is nested too deeply"
        raise TraceError(f"the file cannot be shown ({reason[:300]}): choose another one") from None


def title_of(data: bytes) -> str:
    """Name the kind of a file that the Debug tab shows and the player does not; "" for all others."""
    try:
        if data.startswith(b"PK\x03\x04"):
            return "a run folder" if _unzipped(data) else ""
        if data.startswith(b"PAR1"):
            return "a table of a run folder"
        found = recognise(_unpacked(data))
    except (SpecscopeError, RecursionError, MemoryError):
        return ""
    return found.title if found and found.name != TRACE else ""


def _decoded(asked: object) -> dict[str, bytes]:
    if not isinstance(asked, list) or not asked or len(asked) % 2 or len(asked) > 2 * _MOST_FILES:
        raise TraceError(f"drop at most {_MOST_FILES} files at once")
    if not all(isinstance(each, str) for each in asked):
        raise TraceError("the files did not arrive whole: drop them again")
    if sum(map(len, asked)) > LIMITS.upload_bytes * 4 // 3 + 4_096:
        raise TraceError(f"the files are larger than {LIMITS.upload_bytes >> 20} MB: drop a smaller run folder")
    contents = dict[str, bytes]()
    for name, content in zip(asked[::2], asked[1::2], strict=True):
        try:
            contents[without_surrogates(name[:200])] = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            raise TraceError("the files did not arrive whole: drop them again") from None
    return contents


def _unzipped(data: bytes) -> dict[str, bytes]:
    """Return the files of a run folder in a zip file; its other files are ignored."""
    contents = dict[str, bytes]()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > _MOST_MEMBERS:
                raise TraceError(f"the zip file holds more than {_MOST_MEMBERS} files")
            for member in members:
                name = PurePosixPath(member.filename).name
                if name not in _FILES:
                    continue
                if name in contents:
                    raise TraceError(f"the zip file holds several files {name}: pack one run folder alone")
                with archive.open(member) as file:
                    contents[name] = file.read(LIMITS.brought_bytes + 1)
                if sum(map(len, contents.values())) > LIMITS.brought_bytes:
                    raise TraceError(f"the zip file unpacks to more than {LIMITS.brought_bytes >> 20} MB")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        if isinstance(error, TraceError):
            raise
        raise TraceError("it is no zip file that can be read") from None
    except Exception as error:
        if type(error).__module__ in ("zlib", "lzma"):  # damaged contents
            raise TraceError("it is no zip file that can be read") from None
        raise
    return contents


def _folder(files: Mapping[str, bytes]) -> RunFolder:
    """Make a run folder from its files, which are written under our own names while they are read."""
    if lacking := [f"{name}.parquet" for name in SCHEMAS if f"{name}.parquet" not in files]:
        raise TraceError(f"a run folder has the files {', '.join(_FILES)}, and {lacking[0]} is not there")
    try:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for name in _FILES:
                if name in files:
                    (folder / name).write_bytes(files[name])
            if SUMMARY not in files:
                (folder / SUMMARY).write_text(json.dumps(_summary()), encoding="utf-8")
            return read_folder_apart(folder, _FOLDER, LIMITS.brought_seconds, LIMITS.brought_memory)
    except OSError:
        raise TraceError("this server has no room for it at the moment") from None


def _summary() -> dict[str, Any]:
    """Return the summary of a folder that came without one."""
    return {"version": VERSION, "source": "unknown", "name": "", "created": "", "finished": True, "missing": {}}


def _unpacked(data: bytes) -> bytes:
    """Return the bytes of a file, compressed or not, within the page's limits."""
    limits = Limits(line_bytes=LIMITS.files.total_bytes, total_bytes=LIMITS.files.total_bytes)
    try:
        return b"".join(lines(io.BytesIO(data), limits))
    except CutOffError:
        return data  # what comes before is within the limits, and its reader decides whether it is enough


def _imported(files: Mapping[str, bytes]) -> RunFolder:
    """Import records; compressed ones are unpacked here, within the page's limits."""
    parts = [read_any(_unpacked(data), name=name[:80]) for name, data in files.items()]
    runs, steps, nodes, summary = parts[0] if len(parts) == 1 else merged(parts, " + ".join(files)[:80])
    if len(nodes) > _FOLDER.nodes or len(steps) > _FOLDER.steps or len(runs) > _FOLDER.runs:
        raise TraceError("it holds more steps than this page takes")
    return RunFolder(Path("brought"), runs, steps, nodes, summary)
