"""N-gram tables that come with a model, in a quarter of the bytes: nobody waits for them to be made."""

from __future__ import annotations

from pathlib import Path

import torch

from ..errors import ModelError
from .rankings import RANKINGS
from .tables import LENGTH, TOP, Tables

_VERSION = "1"
_LARGEST = 2**28  # bytes
_SMALL = 2**16  # tokens that two bytes tell apart


def write_tables(path: Path, tables: Tables) -> None:
    """Ids of two bytes where the vocabulary allows it, and probabilities of two."""
    from safetensors.torch import save

    ids = torch.uint16 if len(tables.tensors["bigram"]) <= _SMALL else torch.int32
    small = {name: tables.tensors[name].to(ids) for name in ("unigram", "bigram")}
    small["probability"] = tables.tensors["probability"].half()
    part = path.with_suffix(".new")
    part.write_bytes(save(small, {"version": _VERSION, "head": " ".join(map(str, tables.head))}))
    part.replace(path)


def read_tables(path: str | Path, vocabulary: int) -> Tables:
    """What `write_tables` wrote for a model of that vocabulary."""
    from safetensors import SafetensorError, safe_open

    top = min(TOP, vocabulary)
    shapes = {"unigram": [len(RANKINGS), top], "bigram": [vocabulary, top], "probability": [vocabulary, top]}
    kinds = {"unigram": ("U16", "I32"), "bigram": ("U16", "I32"), "probability": ("F16",)}
    try:
        if Path(path).stat().st_size > _LARGEST:
            raise _damaged(path)
        with safe_open(path, framework="pt", device="cpu") as file:
            facts = file.metadata() or {}
            for name, shape in shapes.items():
                part = file.get_slice(name)
                if part.get_shape() != shape or part.get_dtype() not in kinds[name]:
                    raise _damaged(path)
            tensors = {name: file.get_tensor(name) for name in shapes}
    except (OSError, SafetensorError):
        raise _damaged(path) from None
    ids = {name: tensors[name].int() for name in ("unigram", "bigram")}
    shares, head = tensors["probability"].float(), facts.get("head", "").split()
    sound = facts.get("version") == _VERSION and all(word.isascii() and word.isdigit() for word in head)
    sound &= all(int(part.min()) >= 0 and int(part.max()) < vocabulary for part in ids.values())
    if not (sound and bool(((shares >= 0.0) & (shares <= 1.0)).all())):
        raise _damaged(path)
    return Tables(ids | {"probability": shares}, LENGTH, [int(word) for word in head])


def _damaged(path: str | Path) -> ModelError:
    return ModelError(f"the n-gram tables {Path(path).name[:80]!r} are damaged or of another model: copy them again")
