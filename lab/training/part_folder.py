"""Writes the folders of trained parts: Medusa heads and Kangaroo adapters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from decoding.parts.adapter_config import AdapterConfig
from decoding.parts.heads import FILE, HeadWeights
from decoding.parts.medusa_tree import Accuracies
from decoding.parts.part_files import NamedWeights
from decoding.types import JSON


def save_heads(folder: str | Path, weights: HeadWeights, base: str, accuracies: Accuracies | None = None) -> None:
    """Write heads for our `load_heads` and for other programs; `base` names the model that they were trained for."""
    blocks, count = weights.weight.shape[:2]
    tensors = {f"{head}.{blocks}.weight": weights.output[at] for at, head in enumerate(weights.with_output)}
    for head in range(count):
        for layer in range(blocks):
            tensors[f"{head}.{layer}.linear.weight"] = weights.weight[layer, head]
            tensors[f"{head}.{layer}.linear.bias"] = weights.bias[layer, head]
    config: dict[str, JSON] = {"medusa_num_heads": count, "medusa_num_layers": blocks, "base_model_name_or_path": base}
    if accuracies is not None:
        config["accuracies"] = [list(row) for row in accuracies]
    save_part(Path(folder), FILE, tensors, config)


def save_adapter(folder: str | Path, config: AdapterConfig, weights: NamedWeights) -> None:
    """Write an adapter's folder, for `load_adapter` of decoding.parts.adapter_files."""
    save_part(Path(folder), "adapter.safetensors", weights, config.to_json())


def save_part(
    folder: Path, file: str, weights: NamedWeights, config: Mapping[str, JSON], facts: Mapping[str, str] | None = None
) -> None:
    """Write a part's weights and its config.json; if the process is killed before the end, the old part stays."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    copies = {name: weight.detach().to("cpu", copy=True).contiguous() for name, weight in weights.items()}
    save_file(copies, folder / f"{file}.new", dict(facts) if facts else None)
    text = json.dumps(config, allow_nan=False, indent=2) + "\n"
    (folder / "config.json.new").write_text(text, encoding="utf-8")
    for name in (file, "config.json"):
        (folder / f"{name}.new").replace(folder / name)
