"""The manifest of a converted folder, by which later starts notice files that were truncated or changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_NAME = "manifest.json"


def write_manifest(folder: Path) -> None:
    """Write the folder's files with their sizes, times and hashes; the folder counts as whole from then on."""
    files = [path for path in sorted(folder.iterdir()) if path.name != _NAME]
    _save(folder, {path.name: {**_stamp(path), "sha256": _digest(path)} for path in files})


def is_whole(folder: Path) -> bool:
    """Return True if every file is unchanged: compare sizes, times and headers, and hashes if a time changed.

    A folder without a manifest is unfinished, or an older version made it.
    """
    from safetensors import SafetensorError, safe_open

    try:
        files = json.loads((folder / _NAME).read_bytes())
        stamps = {name: {**_stamp(folder / name), "sha256": entry["sha256"]} for name, entry in files.items()}
        for name, stamp in stamps.items():
            if stamp["size"] != files[name]["size"]:
                return False
            if stamp != files[name] and _digest(folder / name) != stamp["sha256"]:
                return False
            if name.endswith(".safetensors"):
                with safe_open(folder / name, framework="pt"):  # reads the header
                    pass
    except (OSError, ValueError, LookupError, TypeError, AttributeError, SafetensorError):
        return False
    if stamps != files:  # copied, or touched: the next start need not hash again
        with suppress(OSError):
            _save(folder, stamps)
    return True


def _save(folder: Path, files: Mapping[str, object]) -> None:
    draft = folder / f".{_NAME}.{os.getpid()}"
    draft.write_text(json.dumps(files, indent=1), encoding="utf-8")
    draft.replace(folder / _NAME)


def _stamp(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "changed_ns": status.st_mtime_ns}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
