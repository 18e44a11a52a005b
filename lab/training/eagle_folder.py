"""Writes the folders of EAGLE-3 drafters that were trained here."""

from __future__ import annotations

from pathlib import Path

import torch

from decoding.model.files import read_json
from decoding.parts.eagle_config import FLAGS, EagleConfig
from decoding.parts.part_files import NamedWeights
from decoding.types import JSON

from .drafter_folder import FORMAT, save_drafter


def save_eagle(folder: Path, config: EagleConfig, weights: NamedWeights, ids: torch.Tensor | None, steps: int) -> None:
    """Write a drafter; `steps` is how many guesses in a row it was trained to make."""
    save_drafter(folder, weights, ids, config.shape.vocabulary, _config_json(config, steps))


def _config_json(config: EagleConfig, steps: int) -> dict[str, JSON]:
    proposal = {"proposal_type": "greedy", "speculative_tokens": steps, "verifier_accept_k": 1, "accept_tolerance": 0.0}
    return {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "speculators_version": FORMAT,
        "transformer_layer_config": dict(config.layer),
        "draft_vocab_size": config.draft_vocabulary,
        "target_hidden_size": config.target_hidden,
        "eagle_aux_hidden_state_layer_ids": list(config.taps or ()),
        **{name: getattr(config, name) for name in FLAGS},
        "embed_requires_grad": False,
        "tie_word_embeddings": False,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [proposal],
            "verifier": {"name_or_path": config.verifier, "architectures": []},
        },
    }


def learnt_guesses(folder: Path) -> int:
    """Return how many guesses in a row a drafter was trained to make, by its configuration; else 1."""
    settings: JSON = read_json(folder / "config.json").get("speculators_config")
    proposals = settings.get("proposal_methods") if isinstance(settings, dict) else None
    first = proposals[0] if isinstance(proposals, list) and proposals else None
    count = first.get("speculative_tokens") if isinstance(first, dict) else None
    return count if type(count) is int and count > 0 else 1
