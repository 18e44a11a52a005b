"""Writes the folders of drafters that were trained here, in the format of the library speculators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from decoding.parts.part_files import NamedWeights
from decoding.types import JSON

from .part_folder import save_part

FORMAT = "0.9.0"  # of the library whose format is written


def save_drafter(
    folder: Path, weights: NamedWeights, ids: torch.Tensor | None, vocabulary: int, config: Mapping[str, JSON]
) -> None:
    """Write a drafter of the tokens `ids` of a vocabulary, or of all."""
    mapping = dict[str, torch.Tensor]()
    if ids is not None:
        draftable = torch.zeros(vocabulary, dtype=torch.bool)
        draftable[ids] = True
        mapping = {"d2t": ids.long() - torch.arange(len(ids)), "t2d": draftable}
    save_part(folder, "model.safetensors", {**weights, **mapping}, config, {"format": "pt"})
