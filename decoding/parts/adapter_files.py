"""An adapter's folder: config.json, an `AdapterConfig`, and adapter.safetensors: names as in transformers' layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import torch

from ..errors import ModelError, ParamError, UnfitError
from ..model.draft_vocabulary import DraftVocabulary
from ..model.files import FLOATS, read_json
from ..model.split import AnyDecoder
from ..packed import open_tensors, stored
from ..params import shown
from .adapter import Adapter
from .adapter_config import AdapterConfig
from .draft_vocabulary import read_vocabulary
from .part_files import NamedWeights, digest_of, misfit_of


def load_adapter(folder: str, model: AnyDecoder) -> Adapter:
    """Read an adapter that was made for this model; ModelError if it was not, or is damaged."""
    stored = read_adapter(folder, model)
    return Adapter(stored.config, stored.weights, model, stored.about, stored.vocabulary)


class StoredAdapter(NamedTuple):
    """The contents of an adapter's folder."""

    config: AdapterConfig
    weights: NamedWeights
    vocabulary: DraftVocabulary | None
    about: str


def read_adapter(folder: str, model: AnyDecoder, *, lenient: bool = False) -> StoredAdapter:
    """Read a folder, and check it against the model; `lenient` lets the name of another model pass."""
    where, shape = Path(folder), model.shape
    config = _read_config(where)
    if config.base_hash not in ("", model.card.hash) and not lenient:
        raise UnfitError(
            "verifier",
            f"the adapter is for {shown(config.base_model)}, not for {shown(model.card.name)} as it is now: name one "
            "made for this model, or delete base_hash from its config.json if only the form of the two's files differs",
        )
    if (layer := config.exit_layer) > shape.layers:
        raise UnfitError(
            "exit_layer", f"the adapter reads layer {layer} of a model of {shape.layers}: name one made for it"
        )
    weights = _read_weights(stored(where / "adapter.safetensors"), config.tensors(shape.hidden, shape.vocabulary))
    vocabulary = read_vocabulary(where, model)
    digest = digest_of(config.to_json(), weights, vocabulary.about if vocabulary else "")
    return StoredAdapter(config, weights, vocabulary, f"{where.resolve().name} {digest}")


def _read_config(where: Path) -> AdapterConfig:
    try:
        exists = (where / "config.json").is_file()
    except OSError:  # a name too long for the file system
        exists = False
    if not exists:
        raise ModelError(f"{str(where)[:200]!r} is no adapter's folder: it has no config.json")
    raw, names = read_json(where / "config.json"), {field.name for field in fields(AdapterConfig)}
    if missing := names - raw.keys() - {"base_model", "base_hash"}:
        raise ModelError(f"config.json in {str(where)!r} has no {min(missing)}: name the folder of a Kangaroo adapter")
    try:
        return AdapterConfig.parse({name: raw[name] for name in names & raw.keys()})
    except ParamError as error:
        raise ModelError(f"config.json in {str(where)!r} cannot be used: {error}") from None


def _read_weights(path: Path, wanted: Mapping[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
    """Read the weights, whose names, shapes and types are checked first."""
    if not path.is_file():
        raise ModelError(f"{str(path.parent)!r} has no {path.name}: fetch it, or convert the weights to safetensors")
    with open_tensors(path, f"{path.name} in {str(path.parent)!r} is damaged or cut short; fetch it again") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # the file is no dict
        if misfit := misfit_of(slices, wanted):
            raise ModelError(f"the adapter's weight {misfit}: its files do not belong together")
        for name, size in wanted.items():
            shape, dtype = slices[name].get_shape(), slices[name].get_dtype()
            if tuple(shape) != size:
                raise ModelError(f"the weight {name} is {shape}, not {list(size)}: name an adapter for this model")
            if dtype not in FLOATS:
                raise ModelError(f"the adapter's {name} is stored as {dtype}; save it as float32 or bfloat16")
        weights: dict[str, torch.Tensor] = {name: file.get_tensor(name) for name in wanted}
    if broken := [name for name, weight in weights.items() if not weight.isfinite().all()]:
        raise ModelError(f"the adapter's weight {broken[0]} holds NaN or infinity; train it anew or fetch it again")
    return weights
