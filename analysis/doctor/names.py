"""Entries of a drafter's config.json that are mistyped, so that the entry that was meant has its default value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from decoding.errors import ModelError
from decoding.model.config import FAMILIES
from decoding.model.files import read_json
from decoding.parts.adapter_config import AdapterConfig
from decoding.parts.eagle_config import FLAGS, LAYERS
from decoding.types import JSON

from .probes import Check

_LONG = 8  # letters of a name, in which two may be wrong
_MODEL = {  # what is read of a model's configuration, or of a layer's
    "model_type",
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "partial_rotary_factor",
    "hidden_act",
    "attention_bias",
    "mlp_bias",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "layer_types",
    "tie_word_embeddings",
    "quantization_config",
}
_TAPS = "eagle_aux_hidden_state_layer_ids"
_EAGLE = {
    *FLAGS,
    _TAPS,
    "architectures",
    "draft_vocab_size",
    "eagle_config",
    "speculators_config",
    "speculators_model_type",
    "target_hidden_size",
    "transformer_layer_config",
}
_MEDUSA = {"medusa_num_heads", "medusa_num_layers", "base_model_name_or_path", "accuracies"}
_KANGAROO = {field.name for field in fields(AdapterConfig)} | {"architectures"}  # transformers' own


def check_names(kind: str, config: Mapping[str, JSON]) -> Check:
    """Look for unknown entries whose names are nearly those of entries that are absent.

    Other programs' entries are common, and no reason to speak up.
    """
    found = [each for held, known in _levels(kind, config) for each in _misspelt(held, known)]
    if not found:
        return Check("names", "names", fine=True, sentence="no entry of config.json looks mistyped")
    sentence = "; ".join(f"nothing reads {given!r} in config.json, perhaps {meant} is meant" for given, meant in found)
    return Check("names", "names", fine=True, sentence=sentence, note=True)


def names_in(kind: str, folder: str | Path) -> list[Check]:
    """Check the names in a folder that is refused; none where there is no configuration to read."""
    try:
        return [check_names(kind, read_json(Path(folder) / "config.json"))]
    except ModelError:
        return []


def _levels(kind: str, config: Mapping[str, JSON]) -> Iterator[tuple[Mapping[str, JSON], set[str]]]:
    """List the objects of a configuration, each with the names that are read of it."""
    if kind == "kangaroo":
        yield config, _KANGAROO
    elif kind == "medusa":
        yield config, _MEDUSA
    elif kind == "draft":
        if config.get("model_type") in FAMILIES:
            yield config, _MODEL
    else:
        layer, flat = config.get("transformer_layer_config"), "speculators_model_type" not in config
        yield config, _EAGLE | (_MODEL if flat else set())
        if not flat and isinstance(layer, dict):
            yield layer, _MODEL
        if isinstance(nested := config.get("eagle_config"), dict):
            yield nested, {_TAPS}


def _transformers_names(family: JSON) -> set[str]:
    """Return the other names of a family's configuration, none of which is mistyped."""
    from transformers import CONFIG_MAPPING

    return set(CONFIG_MAPPING[str(family)]().to_dict()) if family in (*FAMILIES, *LAYERS) else set()


def _misspelt(held: Mapping[str, JSON], read: Collection[str]) -> Iterator[tuple[str, str]]:
    others = _transformers_names(held.get("model_type")) if "model_type" in read else set()
    absent = [name for name in read if name not in held]
    for name in held:
        if name not in read and name not in others and (near := [each for each in absent if _is_near(name, each)]):
            yield name[:80], min(near)


def _is_near(given: str, meant: str) -> bool:
    """Return whether a slip of one letter makes one name of the other, or two in names of as many words."""
    given = given.lower().replace("-", "_")
    if abs(len(given) - len(meant)) > 2:
        return False
    distance = _distance(given, meant)
    same_words = given.count("_") == meant.count("_") and len(meant) >= _LONG
    return distance <= (2 if same_words else 1)


def _distance(one: str, other: str) -> int:
    """Count the letters to insert, delete, replace or exchange with their neighbours."""
    before: list[int]
    row: list[int]
    before, row = [], [*range(len(other) + 1)]
    for at, letter in enumerate(one, start=1):
        last, before, row = before, row, [at]
        for to, wanted in enumerate(other, start=1):
            row.append(min(before[to] + 1, row[-1] + 1, before[to - 1] + (letter != wanted)))
            if at > 1 and to > 1 and one[at - 2] == wanted and letter == other[to - 2]:
                row[-1] = min(row[-1], last[to - 2] + 1)
    return row[-1]
