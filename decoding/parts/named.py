"""The parts that users name. A part is registered here alone: flags, catalogs and forms read it from `NAMED_PARTS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import ModelError

if TYPE_CHECKING:
    from ..codec import Codec
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


def _read_store(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from .datastore import fingerprint, load_store

    return load_store(path, fingerprint(codec), target.card.vocabulary)


_TRAINED = "a folder or hub id, trained for the model"
NAMED_PARTS = {  # by their names in a method's `needs`
    "medusa": NamedPart("medusa", "Medusa heads", "org/heads", _TRAINED, _read_heads),
    "kangaroo": NamedPart("kangaroo", "a Kangaroo adapter", "org/adapter", _TRAINED, _read_adapter),
    "eagle": NamedPart("eagle3", "an EAGLE-3 drafter", "org/drafter", _TRAINED, _read_eagle),
    "datastore": NamedPart(
        "rest", "a datastore", "org/datastore", "a file or hub id, made by `datastore build`", _read_store, is_file=True
    ),
}
