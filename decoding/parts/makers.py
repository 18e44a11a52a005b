"""Which parts an engine gets: those that its user names, those that the embedded family brings, and tables for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ..codec import Codec
from ..embedded import PARTS
from ..errors import ModelError
from ..model.session import ProgressCallback
from ..model.split import AnyDecoder
from ..model.transformers_model import AnyModel
from .base import Maker, MethodPart

ReadPart = Callable[[str, AnyModel, Codec], MethodPart]
_MARKS = 16  # before a text, at most


def makers(name: str, target: AnyModel, codec: Codec, named: Mapping[str, str | None]) -> dict[str, Maker]:
    """Return a maker for every part available. What the user named is read now, so that a mistake shows at once."""
    embedded = PARTS.get(name, {})
    makers: dict[str, Maker] = {"tables": partial(_tables, target, codec)}
    for part, read in _READERS.items():
        path = named.get(part)
        if path is not None:
            makers[part] = partial(lambda part, _: part, read(path, target, codec))
        elif part in embedded and embedded[part].exists():
            makers[part] = partial(lambda read, path, _: read(path, target, codec), read, str(embedded[part]))
    return makers


def _tables(target: AnyModel, codec: Codec, progress: ProgressCallback) -> MethodPart:
    from .tables import load_tables

    return load_tables(target, progress, head=head_of(codec, target.card.vocabulary))


def _shipped_tables(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from .shipped_tables import read_tables

    return read_tables(path, target.card.vocabulary)


def head_of(codec: Codec, vocabulary: int) -> list[int]:
    """Return the marks that the tokenizer puts around every text, or at least its begin-of-text token."""
    if codec.tokenizer is None:
        return []
    marks = [token for token in codec.encode("") if token not in codec.end_tokens]
    bos = getattr(codec.tokenizer, "bos_token_id", None)
    if not marks and type(bos) is int:
        marks = [bos]
    return [token for token in marks if token < vocabulary][:_MARKS]


def _heads(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from .heads import load_heads

    return load_heads(path, target)


def _adapter(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from .adapter_files import load_adapter

    return load_adapter(path, _decoder(target))


def _eagle(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from .eagle_files import load_eagle

    return load_eagle(path, target)


def _decoder(target: AnyModel) -> AnyDecoder:
    if not isinstance(target, AnyDecoder):
        raise ModelError(
            f"{target.card.name[:80]} runs in transformers' own modules, whose first layers no adapter can use: "
            "leave the adapter out"
        )
    return target


def _store(path: str, target: AnyModel, codec: Codec) -> MethodPart:
    from .datastore import fingerprint, load_store

    return load_store(path, fingerprint(codec), target.card.vocabulary)


_READERS: Mapping[str, ReadPart] = {
    "medusa": _heads,
    "kangaroo": _adapter,
    "eagle": _eagle,
    "datastore": _store,
    "tables": _shipped_tables,
}
