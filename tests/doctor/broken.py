"""Good drafters of pocket, broken in one way each: copies of their folders with one entry or weight changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from analysis.doctor.drafters import open_drafter
from analysis.doctor.examine import ExaminationReport, examine, finish, sample
from analysis.doctor.probes import Examined
from analysis.doctor.texts import Text, write_texts
from analysis.plain_folder import unpack_folder
from analysis.prompts.tasks import read_tasks
from decoding import Engine, load
from decoding.embedded import DRAFTER, FOLDERS, PARTS, TARGET, TASKS
from decoding.model.decoder import Decoder

Break = Callable[[dict[str, Any], dict[str, torch.Tensor]], None]  # changes a configuration and weights in place

_FILES = {
    "eagle": "model.safetensors",
    "medusa": "medusa_lm_head.safetensors",
    "kangaroo": "adapter.safetensors",
    "draft": "model.safetensors",
}
FEW, MANY = (7, 20), (24, 48)  # prompts, and tokens behind each


def silent(what: str, share: float) -> None:
    """No progress."""


@cache
def pocket() -> Engine:
    """The target."""
    return load(TARGET, device="cpu")


def good(kind: str) -> Path:
    """The folder of a good drafter."""
    return FOLDERS[DRAFTER] if kind == "draft" else PARTS[TARGET][kind]


@cache
def texts(seed: int = 0, size: tuple[int, int] = FEW) -> list[Text]:
    """The target's texts behind some prompts, with what entered all layers."""
    engine = pocket()
    prompts, tokens = size
    assert isinstance(engine.model, Decoder)
    layers = range(engine.model.shape.layers + 1)
    return finish(write_texts(engine, sample(read_tasks(TASKS), prompts, seed), tokens, layers), silent)


def broken(kind: str, to: Path, change: Break) -> Path:
    """A copy of the good drafter with a change."""
    to.mkdir(parents=True, exist_ok=True)
    unpack_folder(good(kind), to)
    config, weights = json.loads((to / "config.json").read_text()), load_file(to / _FILES[kind])
    change(config, weights)
    (to / "config.json").write_text(json.dumps(config))
    save_file({name: weight.contiguous() for name, weight in weights.items()}, to / _FILES[kind], {"format": "pt"})
    return to


def opened(kind: str, folder: Path) -> Examined:
    """A drafter under examination."""
    return open_drafter(pocket(), kind, str(folder), silent)


def report(examined: Examined, seed: int = 0, size: tuple[int, int] = FEW) -> ExaminationReport:
    """What the doctor finds."""
    return finish(examine(examined, texts(seed, size), TARGET, seed), silent)


def entry(**values: Any) -> Break:
    """Another value of some entries of config.json."""
    return lambda config, weights: config.update(values)


def layer(**values: Any) -> Break:
    """Another value of some entries of the layer's configuration."""
    return lambda config, weights: config["transformer_layer_config"].update(values)


def base(theta: float) -> dict[str, Any]:
    """A rotary embedding."""
    return {"rope_type": "default", "rope_theta": theta}
