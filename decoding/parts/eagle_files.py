"""Reads folders of EAGLE-3 drafters, and checks them against the model before any weight is read."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import UnfitError
from ..model.transformers_model import AnyModel
from .drafter_files import about, check_target, read_raw, read_weights
from .eagle import Eagle
from .eagle_config import EagleConfig, read_config, usual_taps
from .part_files import NamedWeights


class StoredEagle(NamedTuple):
    """The contents of a drafter's folder."""

    config: EagleConfig
    taps: tuple[int, ...]
    weights: NamedWeights  # by our names; `ids` if there is a draft vocabulary
    about: str


def load_eagle(folder: str, model: AnyModel) -> Eagle:
    """Read a drafter that was made for this model; ModelError if it was not, or is damaged."""
    stored = read_eagle(folder, model)
    return Eagle(stored.config, stored.taps, stored.weights, model, stored.about)


def read_eagle(folder: str, model: AnyModel, *, lenient: bool = False) -> StoredEagle:
    """Read a folder, and check it against the model.

    `lenient` tolerates what an examination can continue with: another model's name, and norms before fc that the flags
    do not name, or that are missing.
    """
    raw = read_raw(folder)
    config = read_config(raw)
    if not lenient and "speculators_model_type" in raw and raw.get("norm_before_residual") is None:
        raise UnfitError(
            "norm_before_residual",
            "the drafter's config.json lacks norm_before_residual, for which speculators takes false and vLLM true: "
            "write which it is (doctor measures both)",
        )
    taps = usual_taps(model.shape.layers) if config.taps is None else config.taps
    check_target(config, taps, model, lenient=lenient)
    required, norms = config.tensors(len(taps)), fc_norms(config, len(taps)) if lenient else {}
    weights = read_weights(folder, config, taps, {**required, **norms}, model, norms)
    return StoredEagle(config, taps, weights, about(folder, raw, weights))


def fc_norms(config: EagleConfig, taps: int) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of all possible norms before fc."""
    sizes: dict[str, tuple[int, ...]] = {"input_norm.weight": (taps * config.target_hidden,)}
    return sizes | {f"fc_norm.{tap}.weight": (config.target_hidden,) for tap in range(taps)}
