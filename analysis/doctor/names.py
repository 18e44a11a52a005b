"""Finds mistyped entries of a drafter's config.json, whose intended entries have their default values."""

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
_BLOCK = {  # of a DFlash drafter, in either form beside or below `dflash_config`
    "block_size",
    "mask_token_id",
    "sample_from_anchor",
    "draft_vocab_size",
    "target_hidden_size",
}
_PUBLISHED = {
    *_BLOCK,
    "aux_hidden_state_layer_ids",
    "sliding_window_non_causal",
    "architectures",
    "speculators_config",
    "speculators_model_type",
    "transformer_layer_config",
}
_AUTHORS = {*_BLOCK, "target_layer_ids", "is_causal", "causal", "use_swa", "swa_window_size", "projector_type"}
_MEDUSA = {"medusa_num_heads", "medusa_num_layers", "base_model_name_or_path", "accuracies"}
_KANGAROO = {field.name for field in fields(AdapterConfig)} | {"architectures"}  # transformers' own


def check_names(kind: str, config: Mapping[str, JSON]) -> Check:
    """Look for unknown entries whose names are nearly those of entries that are absent.

    Other programs' entries are common, and no reason to speak up.
    """
    mistyped = [pair for entries, read in _levels(kind, config) for pair in _mistyped(entries, read)]
    if not mistyped:
        return Check("names", "names", fine=True, sentence="no entry of config.json looks mistyped")
    sentence = "; ".join(f"nothing reads {name!r} in config.json, perhaps {meant} is meant" for name, meant in mistyped)
    return Check("names", "names", fine=True, sentence=sentence, note=True)


def names_in(kind: str, folder: str | Path) -> list[Check]:
    """Check the names in a folder's config.json; returns nothing if it cannot be read."""
    try:
        return [check_names(kind, read_json(Path(folder) / "config.json"))]
    except ModelError:
        return []


def _levels(kind: str, config: Mapping[str, JSON]) -> Iterator[tuple[Mapping[str, JSON], set[str]]]:
    """Yield the objects of a configuration, each with the names of the entries that are read."""
    if kind == "kangaroo":
        yield config, _KANGAROO
    elif kind == "medusa":
        yield config, _MEDUSA
    elif kind == "draft":
        if config.get("model_type") in FAMILIES:
            yield config, _MODEL
    else:
        layer, flat = config.get("transformer_layer_config"), "speculators_model_type" not in config
        if kind == "eagle":
            read, below, inner = _EAGLE, "eagle_config", {_TAPS}
        else:
            read, below = (_AUTHORS | {"architectures", "dflash_config"} if flat else _PUBLISHED), "dflash_config"
            inner = _AUTHORS
        yield config, read | (_MODEL if flat else set())
        if not flat and isinstance(layer, dict):
            yield layer, _MODEL
        if isinstance(nested := config.get(below), dict):
            yield nested, inner


def _transformers_names(family: JSON) -> set[str]:
    """Return the other names of a family's configuration, none of which is mistyped."""
    from transformers import CONFIG_MAPPING

    return set(CONFIG_MAPPING[str(family)]().to_dict()) if family in (*FAMILIES, *LAYERS) else set()


def _mistyped(entries: Mapping[str, JSON], read: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each entry that nothing reads and whose name is nearly that of an absent one, with the latter."""
    others = _transformers_names(entries.get("model_type")) if "model_type" in read else set()
    absent = [name for name in read if name not in entries]
    for name in entries:
        if name not in read and name not in others and (near := [each for each in absent if _is_near(name, each)]):
            yield name[:80], min(near)


def _is_near(given: str, meant: str) -> bool:
    """Return True if the names differ by one letter, or by two if they are long and have as many words.

    The ratio of difflib would also pair names that share a long word, such as two numbers of heads.
    """
    given = given.lower().replace("-", "_")
    if abs(len(given) - len(meant)) > 2:
        return False
    distance = _distance(given, meant)
    same_words = given.count("_") == meant.count("_") and len(meant) >= _LONG
    return distance <= (2 if same_words else 1)


def _distance(one: str, other: str) -> int:
    """Return the edit distance, in which exchanged neighbours count once."""
    before: list[int]
    row: list[int]
    before, row = [], [*range(len(other) + 1)]
    for at, letter in enumerate(one, start=1):
        last, before, row = before, row, [at]
        for to, target in enumerate(other, start=1):
            row.append(min(before[to] + 1, row[-1] + 1, before[to - 1] + (letter != target)))
            if at > 1 and to > 1 and one[at - 2] == target and letter == other[to - 2]:
                row[-1] = min(row[-1], last[to - 2] + 1)
    return row[-1]
