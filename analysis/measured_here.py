"""Files of this machine's measurements in the user's cache, by model, device, dtype, threads and versions."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decoding.processor import processor_name
from decoding.types import JSON
from decoding.user_cache import user_cache

if TYPE_CHECKING:
    from decoding.engine import Engine

_MOST_FILES = 100  # that are read of a kind


def machine_facts(engine: Engine) -> dict[str, JSON]:
    """Return what measured times depend on, besides the model: device, dtype, threads and versions."""
    import torch

    device = engine.model.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()
    return {
        "device": name or device.type,
        "dtype": engine.model.precision,
        "threads": torch.get_num_threads(),
        "versions": _versions(),
    }


def _versions() -> str:
    return f"torch {version('torch')}, transformers {version('transformers')}"


def file_here(engine: Engine, kind: str) -> Path | None:
    """Return the file of this model and machine in the user's cache; None if there is no cache."""
    home, card = user_cache(), engine.model.card
    if home is None:
        return None
    key = json.dumps([card.hash, [str(each) for each in engine.model.devices], machine_facts(engine)])
    slug = re.sub(r"[^a-z0-9]+", "-", Path(card.name).name.lower()).strip("-")[:40]
    return home / kind / f"{slug}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def read_here(path: Path | None) -> dict[str, Any]:
    """Return the contents of the file; nothing if it is missing or cut short."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        content = json.loads(path.read_text(encoding="utf-8"))  # type: ignore[union-attr]
        if isinstance(content, dict):
            return content
    return {}


def contents_here(kind: str) -> Iterator[dict[str, Any]]:
    """Yield what was measured on this processor with these versions, of every model; nothing here needs torch."""
    home = user_cache()
    for path in [] if home is None else sorted((home / kind).glob("*.json"))[:_MOST_FILES]:
        content = read_here(path)
        if (content.get("device"), content.get("versions")) == (processor_name(), _versions()):
            yield content


def write_here(path: Path | None, content: dict[str, JSON]) -> None:
    """Write the file in one move, so that a stopped measurement leaves it whole; a full disk costs only the file."""
    with contextlib.suppress(OSError):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            partial.replace(path)
