"""Finds a part that a user names: a folder or file of this machine, or a repository of the hub."""

from __future__ import annotations

from pathlib import Path

from ..errors import ModelError
from ..hub import find, parse_id
from ..model.session import ProgressCallback
from .named import NAMED_PARTS


def find_part(part: str, name: str, progress: ProgressCallback, *, download: bool = True) -> str:
    """Return the folder or file itself, or the copy of a hub repository; ModelError if it is neither."""
    row = NAMED_PARTS[part]
    place, what, kind = Path(name), row.title, "file" if row.is_file else "folder"
    try:
        if place.is_file() if row.is_file else place.is_dir():
            return name
        exists = place.exists()
    except OSError:  # a name too long for the file system
        exists = True
    hub_id = None if exists else parse_id(name, owned=True)
    if hub_id is None:
        raise ModelError(f"{name[:200]!r} is no {kind}: name one of {what}, or a hub id such as {row.example}@revision")
    folder = find(hub_id, what, progress, download=download)
    if not row.is_file:
        return str(folder)
    files = sorted(folder.glob("*.safetensors"))
    if len(files) != 1:
        raise ModelError(f"{str(hub_id)[:200]!r} holds {len(files)} files with tensors, where {what} is one: name it")
    return str(files[0])
