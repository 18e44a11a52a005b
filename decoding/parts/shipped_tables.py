"""N-gram tables that come with a model, in an eighth of the bytes: nobody waits for them to be made."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import torch

from ..errors import ModelError
from .rankings import RANKINGS
from .tables import LENGTH, TOP, Tables

_VERSION = "1"
_LARGEST = 2**28  # bytes, unpacked
_IDS = (torch.uint16, torch.int32)
_SMALL = 2**16  # tokens that two bytes tell apart


def write_tables(path: Path, tables: Tables) -> None:
    """Ids of two bytes where the vocabulary allows it, and probabilities of two; all of it compressed."""
    from safetensors.torch import save

    ids = torch.uint16 if len(tables.tensors["bigram"]) <= _SMALL else torch.int32
    small = {name: tables.tensors[name].to(ids) for name in ("unigram", "bigram")}
    small["probability"] = tables.tensors["probability"].half()
    part = path.with_suffix(".new")
    content = save(small, {"version": _VERSION, "head": " ".join(map(str, tables.head))})
    part.write_bytes(gzip.compress(content, mtime=0))
    part.replace(path)


def read_tables(path: str | Path, vocabulary: int) -> Tables:
    """What `write_tables` wrote for a model of that vocabulary."""
    top = min(TOP, vocabulary)
    shapes = {"unigram": (len(RANKINGS), top), "bigram": (vocabulary, top), "probability": (vocabulary, top)}
    kinds = {"unigram": _IDS, "bigram": _IDS, "probability": (torch.float16,)}
    facts, tensors = _content(Path(path))
    if tensors.keys() != shapes.keys():
        raise _damaged(path)
    if any(part.shape != shapes[name] or part.dtype not in kinds[name] for name, part in tensors.items()):
        raise _damaged(path)
    ids = {name: tensors[name].int() for name in ("unigram", "bigram")}
    shares, head = tensors["probability"].float(), facts.get("head", "").split()
    sound = facts.get("version") == _VERSION and all(word.isascii() and word.isdigit() for word in head)
    sound &= all(int(part.min()) >= 0 and int(part.max()) < vocabulary for part in ids.values())
    if not (sound and bool(((shares >= 0.0) & (shares <= 1.0)).all())):
        raise _damaged(path)
    return Tables(ids | {"probability": shares}, LENGTH, [int(word) for word in head])


def _content(path: Path) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    """What a file says of itself, and its tensors."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        with gzip.open(path) as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise _damaged(path)
        tensors = load(content)  # checks the header that is read again below
    except (OSError, EOFError, zlib.error, SafetensorError):
        raise _damaged(path) from None
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]).get("__metadata__", {}), tensors


def _damaged(path: str | Path) -> ModelError:
    return ModelError(f"the n-gram tables {Path(path).name[:80]!r} are damaged or of another model: copy them again")
