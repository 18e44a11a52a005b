"""Reads folders of drafters that read the target's features, and checks them before any weight is read.

Only safetensors are read: pickled weights can run code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import torch

from .. import smollm2
from ..embedded import FOLDERS, ROOT
from ..errors import ModelError, UnfitError
from ..model.config import Shape
from ..model.files import PICKLES, TensorFiles, read_json
from ..model.transformers_model import AnyModel
from ..params import shown
from ..types import JSON
from .part_files import NamedWeights, digest_of, misfit_of

WeightSizes = Mapping[str, tuple[int, ...]]  # of weights, by their names

_OPTIONAL = ("lm_head.weight", "embed_tokens.weight", "d2t", "t2d")
_LAYER = {"midlayer.": "layers.0."}  # of EAGLE's authors, and in ours


class DrafterConfig(Protocol):
    """What the configurations of all such drafters hold."""

    @property
    def shape(self) -> Shape:
        """The sizes of its layers; the vocabulary is the target's."""

    @property
    def draft_vocabulary(self) -> int:
        """The number of tokens that it can draft."""

    @property
    def target_hidden(self) -> int:
        """The size of the target's hidden states."""

    @property
    def verifier(self) -> str:
        """The name of the model that it was trained for, if given."""


def read_raw(folder: str) -> dict[str, JSON]:
    """Return a folder's config.json; ModelError if the folder holds no weights that can be read."""
    place = Path(folder)
    if not (place / "config.json").is_file():
        raise ModelError(f"{folder[:200]!r} is no drafter's folder: it has no config.json")
    if not list(place.glob("*.safetensors*")) and (pickles := [p for kind in PICKLES for p in place.glob(kind)]):
        raise ModelError(
            f"{folder[:200]!r} holds pickled weights only ({pickles[0].name[:80]}), and those can run code: load them "
            "where you trust them, and save them with safetensors.torch.save_file as model.safetensors"
        )
    return read_json(place / "config.json")


def read_weights(
    folder: str,
    config: DrafterConfig,
    taps: Sequence[int],
    required: WeightSizes,
    model: AnyModel,
    tolerated: Collection[str] = (),
) -> NamedWeights:
    """Read the weights by our names, and check them; `ids` if there is a draft vocabulary.

    The weights `tolerated` may be missing.
    """
    with TensorFiles(Path(folder)) as files:
        names = _names(files.shapes)
        shapes = {name: files.shapes[stored] for name, stored in names.items()}
        _check_tensors(config, taps, required, shapes, model, tolerated)
        weights = {name: files.get(stored) for name, stored in names.items() if name not in ("d2t", "t2d")}
        mapping: dict[str, torch.Tensor] = {key: files.get_raw(names[key]) for key in ("d2t", "t2d") if key in names}
    if broken := [name for name, weight in weights.items() if not weight.isfinite().all()]:
        raise UnfitError("weights", f"the drafter's {broken[0]} holds NaN or infinity: train it anew or fetch it again")
    if (ids := _ids(config, mapping)) is not None:
        weights["ids"] = ids
    return weights


def about(folder: str, raw: Mapping[str, JSON], weights: NamedWeights) -> str:
    """Return a drafter's name and hash, for the record."""
    return f"{Path(folder).resolve().name} {digest_of(raw, weights)}"


def check_target(config: DrafterConfig, taps: Sequence[int], model: AnyModel, *, lenient: bool) -> None:
    """Refuse a drafter whose configuration is for another model."""
    name, shape = shown(model.card.name), model.shape
    if config.verifier and not same_model(config.verifier, model.card.name) and not lenient:
        raise UnfitError(
            "verifier",
            f"the drafter is for {shown(config.verifier)}, not for {name}: name one made for this model, or empty "
            "name_or_path in its config.json if only the names differ",
        )
    for flag, what, expected, actual in (
        ("vocab_size", "a vocabulary of {:,} tokens", config.shape.vocabulary, shape.vocabulary),
        ("target_hidden_size", "hidden states of size {:,}", config.target_hidden, shape.hidden),
    ):
        if expected != actual:
            raise UnfitError(
                flag,
                f"the drafter was made for a model with {what.format(expected)}, but {name} has {actual:,}: "
                "name one made for this model",
            )
    if taps[-1] > shape.layers:
        raise UnfitError(
            "taps", f"the drafter reads layer {taps[-1]} of {name}, which has {shape.layers}: name one made for it"
        )
    if config.draft_vocabulary > shape.vocabulary:
        raise UnfitError(
            "draft_vocab_size",
            f"the drafter drafts {config.draft_vocabulary} tokens, but the model has {shape.vocabulary}: "
            "fetch its config.json again",
        )


def same_model(named: str, name: str) -> bool:
    """Return True if two names may be the same model's: the last part of a folder or hub id decides."""

    def end(name: str) -> str:
        return re.split(r"[/\\]", name.rstrip("/\\"))[-1].partition("@")[0].lower()

    return end(named) == end(name) or named == verifier_name(name)


def verifier_name(name: str) -> str:
    """Return the name by which other programs find a model: a hub id or folder in place of our short name."""
    if name == smollm2.NAME:
        return smollm2.HUB_ID
    return FOLDERS[name].relative_to(ROOT).as_posix() if name in FOLDERS else name


def _names(stored: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """Map our names of the weights to the stored ones."""
    names = dict[str, str]()
    for name in stored:
        short = name.removeprefix("model.")
        for old, new in _LAYER.items():
            short = short.replace(old, new, 1) if short.startswith(old) else short
        names[short] = name
    return names


def _check_tensors(
    config: DrafterConfig,
    taps: Sequence[int],
    required: WeightSizes,
    shapes: WeightSizes,
    model: AnyModel,
    tolerated: Collection[str],
) -> None:
    """Raise ModelError unless the files hold exactly the expected weights, in their sizes."""
    hidden, draft, vocabulary = config.shape.hidden, config.draft_vocabulary, model.shape.vocabulary
    expected = {name: size for name, size in required.items() if name in shapes or name not in tolerated}
    sizes = ((draft, hidden), (vocabulary, hidden), (draft,), (vocabulary,))
    for name, size in zip(_OPTIONAL, sizes, strict=True):
        if name in shapes:
            expected[name] = size
    if misfit := misfit_of(shapes, expected):
        raise UnfitError("tensors", f"the drafter's weight {misfit}: its files and config.json do not belong together")
    for name, size in expected.items():
        if shapes[name] != size:
            by = f"the {len(taps)} tapped layers ask" if name == "fc.weight" else "its config.json asks"
            wrong = f"the drafter's {name} has shape {list(shapes[name])[:8]}, but {by} for {list(size)}"
            raise UnfitError("shapes", f"{wrong}: correct config.json, or take both files from the same place")
    for name, what in (("embed_tokens.weight", "embeddings"), ("lm_head.weight", "output layer")):
        if name not in shapes and hidden != model.shape.hidden:
            raise UnfitError("shapes", f"the drafter has no {what}, and the target's have another size: fetch it again")
    if draft != vocabulary and not shapes.keys() & {"d2t", "t2d"}:
        raise UnfitError(
            "vocabulary_map",
            f"the drafter drafts {draft} of {vocabulary} tokens, but no d2t says which: fetch it again",
        )


def _ids(config: DrafterConfig, mapping: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
    """Return the target's ids of the draft vocabulary; None: all."""
    draft, vocabulary = config.draft_vocabulary, config.shape.vocabulary
    offsets, draftable = mapping.get("d2t"), mapping.get("t2d")
    kinds = {"d2t": ((torch.int64, torch.int32), "whole numbers"), "t2d": ((torch.bool,), "true and false")}
    for name, tensor in mapping.items():
        if tensor.dtype not in kinds[name][0]:
            problem = f"the drafter's {name} is stored as {tensor.dtype}, not as {kinds[name][1]}: fetch it again"
            raise UnfitError("vocabulary_map", problem)
    if draft == vocabulary:
        return None
    listed = None if draftable is None else draftable.nonzero().flatten()
    ids = listed if offsets is None else offsets.long() + torch.arange(draft)
    assert ids is not None
    fine = len(ids) == draft and int(ids.min()) >= 0 and int(ids.max()) < vocabulary and len(set(ids.tolist())) == draft
    if not fine or (listed is not None and not torch.equal(ids.sort().values, listed)):
        absolute = offsets is not None and listed is not None and torch.equal(offsets.long().sort().values, listed)
        advice = "d2t holds ids instead, so subtract each one's row from it" if absolute else "make the mapping again"
        raise UnfitError(
            "vocabulary_map",
            f"d2t and t2d of the drafter must name the same {draft} of the model's {vocabulary} tokens, each once: "
            f"{advice}",
        )
    return ids
