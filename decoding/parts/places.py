"""Finds a part that a user names: a folder or file of this machine, or a repository of the hub."""

from __future__ import annotations

from pathlib import Path

from ..errors import ModelError
from ..hub import find, parse_id
from ..model.session import ProgressCallback

_NAMES = {  # what they are called in errors; and in the hub's ids, which show by example what is asked for
    "medusa": ("Medusa heads", "org/heads"),
    "kangaroo": ("a Kangaroo adapter", "org/adapter"),
    "eagle": ("an EAGLE-3 drafter", "org/drafter"),
    "datastore": ("a datastore", "org/datastore"),
}
_FILES = frozenset({"datastore"})  # parts that are a file, not a folder


def find_part(part: str, name: str, progress: ProgressCallback, *, download: bool = True) -> str:
    """Return the folder or file itself, or the copy of a hub repository; ModelError if it is neither."""
    what, example = _NAMES[part]
    place, kind = Path(name), "file" if part in _FILES else "folder"
    try:
        if place.is_file() if part in _FILES else place.is_dir():
            return name
        exists = place.exists()
    except OSError:  # a name too long for the file system
        exists = True
    hub_id = None if exists else parse_id(name, owned=True)
    if hub_id is None:
        raise ModelError(f"{name[:200]!r} is no {kind}: name one of {what}, or a hub id such as {example}@revision")
    folder = find(hub_id, what, progress, download=download)
    if part not in _FILES:
        return str(folder)
    files = sorted(folder.glob("*.safetensors"))
    if len(files) != 1:
        raise ModelError(f"{str(hub_id)[:200]!r} holds {len(files)} files with tensors, where {what} is one: name it")
    return str(files[0])
