"""Checks and hashes the folders of parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping

import torch

from ..types import JSON

NamedWeights = Mapping[str, torch.Tensor]


def misfit_of(stored: Collection[str], expected: Collection[str]) -> str | None:
    """Describe the first weight that is missing or one too many; None if both have the same."""
    name = min({*stored} ^ {*expected}, default=None)
    if name is None or name in stored:
        return name and f"{name[:80]} is one too many"
    other = next((each for each in stored if each.endswith(f".{name}")), None)
    return f"{name[:80]} is missing" + (f", but {other[:80]} is there" if other else "")


def digest_of(config: Mapping[str, JSON], weights: NamedWeights, also: str = "") -> str:
    """Return the first digits of a sha256 over a part's configuration and weights."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    digest.update(also.encode())
    for name in sorted(weights):
        digest.update(weights[name].contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:12]
