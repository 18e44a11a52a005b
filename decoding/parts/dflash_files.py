"""Reads folders of DFlash drafters, and checks them against the model before any weight is read."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import UnfitError
from ..model.transformers_model import AnyModel
from ..params import shown
from .dflash import DFlash
from .dflash_config import DFlashConfig, read_dflash_config
from .drafter_files import about, check_target, read_raw, read_weights
from .part_files import NamedWeights


class StoredDFlash(NamedTuple):
    """The contents of a drafter's folder."""

    config: DFlashConfig
    weights: NamedWeights  # by our names; `ids` if there is a draft vocabulary
    about: str


def load_dflash(folder: str, model: AnyModel) -> DFlash:
    """Read a drafter that was made for this model; ModelError if it was not, or is damaged."""
    stored = read_dflash(folder, model)
    return DFlash(stored.config, stored.weights, model, stored.about)


def read_dflash(folder: str, model: AnyModel, *, lenient: bool = False) -> StoredDFlash:
    """Read a folder, and check it against the model; `lenient` tolerates another model's name."""
    raw = read_raw(folder)
    config = read_dflash_config(raw)
    check_target(config, config.taps, model, lenient=lenient)
    if config.taps[-1] == model.shape.layers:
        raise UnfitError(
            "taps",
            f"the drafter reads what leaves the last layer of {shown(model.card.name)}, before or after the final "
            "norm, and its config.json does not say which: name a drafter that reads earlier layers",
        )
    weights = read_weights(folder, config, config.taps, config.tensors(), model)
    return StoredDFlash(config, weights, about(folder, raw, weights))
