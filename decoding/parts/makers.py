"""Makes the parts of an engine: those that its user names, those of the embedded family, and tables for all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..codec import Codec
from ..embedded import PARTS
from ..model.session import ProgressCallback
from ..model.transformers_model import AnyModel
from .base import Maker
from .named import NAMED_PARTS, MethodPart, ReadPart

_MARKS = 16  # most marks before a text


def makers(name: str, target: AnyModel, codec: Codec, named: Mapping[str, str]) -> dict[str, Maker]:
    """Return a maker for every part available. Parts that the user named are read now, so that a mistake shows."""
    embedded = PARTS.get(name, {})
    makers: dict[str, Maker] = {"tables": partial(_tables, target, codec)}
    readers: dict[str, ReadPart] = {name: part.read for name, part in NAMED_PARTS.items()}
    for part, read in (readers | {"tables": _shipped_tables}).items():
        if part in named:
            makers[part] = partial(lambda part, _: part, read(named[part], target, codec))
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
