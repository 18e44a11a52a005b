"""The files of a running training: a checkpoint, written whole or not at all, and a log of its steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from decoding.errors import ParamError
from decoding.types import JSON

LOG, CHECKPOINT = "log.jsonl", "checkpoint.safetensors"

TrainingLog = list[dict[str, Any]]  # an entry a step


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, JSON]) -> None:
    """Write a checkpoint whole or not at all; `about` is its metadata."""
    from safetensors.torch import save_file

    fresh = path.with_suffix(".new")
    save_file(
        {name: tensor.detach().contiguous() for name, tensor in tensors.items()}, fresh, {"about": json.dumps(about)}
    )
    fresh.replace(path)


def read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read the metadata of a checkpoint, and its tensors."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["about"])
            return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # the file is no dict
    except (SafetensorError, OSError, ValueError, KeyError, TypeError):
        raise damaged(path) from None


def damaged(path: Path) -> ParamError:
    """Make the error for a checkpoint that no training can resume from, or for its log."""
    what = "it" if path.name == CHECKPOINT else f"{CHECKPOINT} beside it"
    return ParamError(f"{path} is damaged: delete {what} to train anew")


def read_log(path: Path) -> TrainingLog:
    """Read the entries, one a step; a line cut off by a kill is left out."""
    return list(_entries(path))


def cut_log(path: Path, step: int) -> None:
    """Drop the entries of steps after `step`, which will be trained again."""
    left = [entry for entry in _entries(path) if entry["step"] <= step]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in left), encoding="utf-8")


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            return
        if not isinstance(entry, dict) or type(entry.get("step")) is not int:
            return
        yield entry
