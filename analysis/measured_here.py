"""Files in the user's cache with what was measured on this machine, by model, device, dtype, threads and versions."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from decoding.engine import Engine
from decoding.processor import processor_name
from decoding.types import JSON
from decoding.user_cache import user_cache


def machine_facts(engine: Engine) -> dict[str, JSON]:
    """Return what measured times depend on, besides the model: device, dtype, threads and versions."""
    device = engine.model.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()
    return {
        "device": name or device.type,
        "dtype": engine.model.precision,
        "threads": torch.get_num_threads(),
        "versions": f"torch {version('torch')}, transformers {version('transformers')}",
    }


def file_here(engine: Engine, kind: str) -> Path | None:
    """Return the file of this model and machine in the user's cache; None where there is no cache."""
    home, card = user_cache(), engine.model.card
    if home is None:
        return None
    key = json.dumps([card.hash, [str(each) for each in engine.model.devices], machine_facts(engine)])
    slug = re.sub(r"[^a-z0-9]+", "-", Path(card.name).name.lower()).strip("-")[:40]
    return home / kind / f"{slug}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def read_here(path: Path | None) -> dict[str, Any]:
    """Return what the file holds; nothing where it is missing or cut short."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        content = json.loads(path.read_text(encoding="utf-8"))  # type: ignore[union-attr]
        if isinstance(content, dict):
            return content
    return {}


def write_here(path: Path | None, content: dict[str, JSON]) -> None:
    """Write the file in one move, so that a stopped measurement leaves it whole; a full disk costs only the file."""
    with contextlib.suppress(OSError):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            partial.replace(path)
