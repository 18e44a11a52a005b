"""The parts that users name. A part is registered here alone: flags, catalogs and forms read it from `NAMED_PARTS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import ModelError
from ..hub import find_repository, parse_id

if TYPE_CHECKING:
    from ..codec import Codec
    from ..model.session import ProgressCallback
    from ..model.transformers_model import AnyModel


class MethodPart(Protocol):
    """Anything that an engine was loaded with for one method."""

    about: str  # name and hash, for the record


ReadPart = Callable[[str, "AnyModel", "Codec"], MethodPart]  # from its folder or file, for this model


class NamedPart(NamedTuple):
    """A part that users name, by a flag, an argument of `load`, a key of a catalog and a field of the page."""

    method: str  # that needs it
    title: str  # in a sentence
    example: str  # of a hub id
    source: str  # what to name
    read: ReadPart
    is_file: bool = False

    @property
    def label(self) -> str:
        """The title without its article."""
        label = self.title.removeprefix("a ").removeprefix("an ")
        return label[0].upper() + label[1:]


def _read_heads(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from .heads import load_heads

    return load_heads(path, target)


def _read_adapter(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from ..model.split import AnyDecoder
    from .adapter_files import load_adapter

    if not isinstance(target, AnyDecoder):
        raise ModelError(
            f"{target.card.name[:80]} runs in transformers' own modules, whose first layers no adapter can use: "
            "leave the adapter out"
        )
    return load_adapter(path, target)


def _read_eagle(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from .eagle_files import load_eagle

    return load_eagle(path, target)


def _read_dflash(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from .dflash_files import load_dflash

    return load_dflash(path, target)


def _read_store(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from .datastore import fingerprint, load_store

    return load_store(path, fingerprint(codec), target.card.vocabulary)


_TRAINED = "a folder or hub id, trained for the model"
NAMED_PARTS = {  # by their names in a method's `needs`
    "medusa": NamedPart("medusa", "Medusa heads", "org/heads", _TRAINED, _read_heads),
    "kangaroo": NamedPart("kangaroo", "a Kangaroo adapter", "org/adapter", _TRAINED, _read_adapter),
    "eagle": NamedPart("eagle3", "an EAGLE-3 drafter", "org/drafter", _TRAINED, _read_eagle),
    "dflash": NamedPart("dflash", "a DFlash drafter", "org/drafter", _TRAINED, _read_dflash),
    "datastore": NamedPart(
        "rest", "a datastore", "org/datastore", "a file or hub id, made by `datastore build`", _read_store, is_file=True
    ),
}


def find_part(part: str, name: str, progress: ProgressCallback, *, download: bool = True) -> str:
    """Return the folder or file that a user names, or the copy of a hub repository; ModelError if it is neither."""
    row, place = NAMED_PARTS[part], Path(name)
    what, kind = row.title, "file" if row.is_file else "folder"
    try:
        if place.is_file() if row.is_file else place.is_dir():
            return name
        exists = place.exists()
    except OSError:  # a name too long for the file system
        exists = True
    hub_id = None if exists else parse_id(name, owned=True)
    if hub_id is None:
        raise ModelError(f"{name[:200]!r} is no {kind}: name one of {what}, or a hub id such as {row.example}@revision")
    folder = find_repository(hub_id, what, progress, download=download)
    if not row.is_file:
        return str(folder)
    files = sorted(folder.glob("*.safetensors"))
    if len(files) != 1:
        raise ModelError(f"{str(hub_id)[:200]!r} holds {len(files)} files with tensors, where {what} is one: name it")
    return str(files[0])
