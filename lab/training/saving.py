"""Writes a trained model as an ordinary transformers folder whose files every host accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_FILE = 8_000_000  # bytes of weights; hosts of git repositories, Hugging Face's among them, refuse files over 10 MB
_SMALL = 100_000_000  # bytes: a larger model is not pushed with plain git, and thousands of files would be a nuisance


def save_model(model: Any, folder: Path) -> None:
    """Save the weights and configurations, in shards of at most 8 MB where the model is small."""
    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    # transformers reads one file before it reads shards: neither form may be left behind from an earlier training.
    for stale in ("model.safetensors", "model.safetensors.index.json"):
        (folder / stale).unlink(missing_ok=True)
    model.save_pretrained(folder, **({"max_shard_size": _FILE} if size <= _SMALL else {}))


def weight_bytes(folder: Path) -> int:
    """Return the size of a folder's weights on disk."""
    return sum(path.stat().st_size for path in folder.glob("model*.safetensors"))
