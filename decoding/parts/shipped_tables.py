"""N-gram tables that come with a model, stored in half the bytes, so that no run has to build them."""

from __future__ import annotations

from pathlib import Path

import torch

from ..errors import ModelError
from ..packed import SUFFIX, open_tensors
from .tables import LENGTH, NgramTables, make_sense, shapes_of

_VERSION = "1"
_IDS = (torch.uint16, torch.int32)
_SMALL = 2**16  # most tokens whose ids fit into two bytes


def write_tables(path: Path, tables: NgramTables) -> None:
    """Write tables with probabilities of two bytes, and ids of two bytes if the vocabulary allows it."""
    from safetensors.torch import save_file

    ids = torch.uint16 if len(tables.tensors["bigram"]) <= _SMALL else torch.int32
    small = {name: tables.tensors[name].to(ids) for name in ("unigram", "bigram")}
    small["probability"] = tables.tensors["probability"].half()
    part = path.with_suffix(".new")
    save_file(small, part, {"version": _VERSION, "head": " ".join(map(str, tables.head))})
    part.replace(path)


def read_tables(path: str | Path, vocabulary: int) -> NgramTables:
    """Read what `write_tables` wrote for a model of that vocabulary."""
    shapes = shapes_of(vocabulary)
    kinds = {"unigram": _IDS, "bigram": _IDS, "probability": (torch.float16,)}
    name = Path(path).name.removesuffix(SUFFIX)[:80]
    refusal = f"the n-gram tables {name!r} are damaged or of another model: copy them again"
    with open_tensors(Path(path), refusal) as file:
        facts, tensors = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    fits = all(part.shape == shapes.get(name) and part.dtype in kinds[name] for name, part in tensors.items())
    if not fits or tensors.keys() != shapes.keys():
        raise ModelError(refusal)
    wide = {name: part.float() if name == "probability" else part.int() for name, part in tensors.items()}
    head = facts.get("head", "").split()
    sound = facts.get("version") == _VERSION and all(word.isascii() and word.isdigit() for word in head)
    if not (sound and make_sense(wide, vocabulary)):
        raise ModelError(refusal)
    return NgramTables(wide, LENGTH, [int(word) for word in head])
