"""Folders of EAGLE-3 drafters: found, checked against the model before any weight is read, and written.

Only safetensors are read: pickled weights can run code. What is written is the format of the library speculators.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from .. import smollm2
from ..embedded import FOLDERS, ROOT
from ..errors import ModelError, UnfitError
from ..model.files import TensorFiles, read_json
from ..model.transformers_model import AnyModel
from ..params import shown
from ..types import JSON
from .eagle import Eagle, Weights
from .eagle_config import FLAGS, EagleConfig, read_config, usual_taps

FORMAT = "0.9.0"  # of the library whose format is written
_OPTIONAL = ("lm_head.weight", "embed_tokens.weight", "d2t", "t2d")
_FC_NORMS = ("input_norm.", "fc_norm.")
_LAYER = {"midlayer.": "layers.0."}  # of the authors' form, and in ours
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


class StoredEagle(NamedTuple):
    """A drafter as its folder holds it."""

    config: EagleConfig
    taps: tuple[int, ...]
    weights: Weights  # by our names; `ids` where there is a draft vocabulary
    about: str


def load_eagle(folder: str, model: AnyModel) -> Eagle:
    """Read a drafter that was made for this model; ModelError where it was not, or is damaged."""
    stored = read_eagle(folder, model)
    return Eagle(stored.config, stored.taps, stored.weights, model, stored.about)


def read_eagle(folder: str, model: AnyModel, *, lenient: bool = False) -> StoredEagle:
    """What a folder holds, checked against the model.

    `lenient` lets pass what an examination can go on with: the name of another model, and norms in front of fc that
    the flags do not speak of, or that are missing.
    """
    place = Path(folder)
    if not (place / "config.json").is_file():
        raise ModelError(f"{folder[:200]!r} is no drafter's folder: it has no config.json")
    if not list(place.glob("*.safetensors*")) and (pickles := [p for kind in _PICKLES for p in place.glob(kind)]):
        raise ModelError(
            f"{folder[:200]!r} holds pickled weights only ({pickles[0].name[:80]}), and those can run code: load them "
            "where you trust them, and save them with safetensors.torch.save_file as model.safetensors"
        )
    raw = read_json(place / "config.json")
    config = read_config(raw)
    taps = usual_taps(model.shape.layers) if config.taps is None else config.taps
    _check_target(config, taps, model, lenient=lenient)
    with TensorFiles(place) as files:
        names = _names(files.shapes)
        found = {name: files.shapes[stored] for name, stored in names.items()}
        _check_tensors(config, taps, found, model, lenient=lenient)
        weights = {name: files.get(stored) for name, stored in names.items() if name not in ("d2t", "t2d")}
        mapping: dict[str, torch.Tensor] = {
            each: files.get_raw(names[each]) for each in ("d2t", "t2d") if each in names
        }
    if broken := [name for name, weight in weights.items() if not weight.isfinite().all()]:
        raise UnfitError(
            "weights", f"the drafter's {broken[0]} holds what is no number: train it anew or fetch it again"
        )
    if (ids := _ids(config, mapping)) is not None:
        weights["ids"] = ids
    return StoredEagle(config, taps, weights, f"{place.resolve().name} {_digest(raw, weights)[:12]}")


def save_eagle(folder: Path, config: EagleConfig, weights: Weights, ids: torch.Tensor | None, steps: int) -> None:
    """Write a drafter; `steps` are the guesses, one behind the other, that it was trained to write."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: weight.detach().to("cpu", copy=True).contiguous() for name, weight in weights.items()}
    if ids is not None:
        known = torch.zeros(config.shape.vocabulary, dtype=torch.bool)
        known[ids] = True
        tensors |= {"d2t": ids.long() - torch.arange(len(ids)), "t2d": known}
    text = json.dumps(_config_json(config, steps), indent=2) + "\n"
    save_file(tensors, folder / "model.safetensors.new", {"format": "pt"})
    (folder / "config.json.new").write_text(text, encoding="utf-8")
    for name in ("model.safetensors", "config.json"):  # a kill before leaves the older drafter as it is
        (folder / f"{name}.new").replace(folder / name)


def learnt_guesses(folder: Path) -> int:
    """How many guesses, one behind the other, a drafter's configuration says that it was trained to write; else 1."""
    settings: JSON = read_json(folder / "config.json").get("speculators_config")
    proposals = settings.get("proposal_methods") if isinstance(settings, dict) else None
    first = proposals[0] if isinstance(proposals, list) and proposals else None
    count = first.get("speculative_tokens") if isinstance(first, dict) else None
    return count if type(count) is int and count > 0 else 1


def _config_json(config: EagleConfig, steps: int) -> dict[str, JSON]:
    proposal = {
        "proposal_type": "greedy",
        "speculative_tokens": steps,
        "verifier_accept_k": 1,
        "accept_tolerance": 0.0,
    }
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


def _check_target(config: EagleConfig, taps: Sequence[int], model: AnyModel, *, lenient: bool) -> None:
    """Refuse a drafter of another model by what its configuration says."""
    name, shape = shown(model.card.name), model.shape
    if config.verifier and not same_model(config.verifier, model.card.name) and not lenient:
        raise UnfitError(
            "verifier",
            f"the drafter is for {shown(config.verifier)}, not for {name}: name one made for this model, or empty "
            "name_or_path in its config.json if only the names differ",
        )
    for flag, what, own, theirs in (
        ("vocab_size", "a vocabulary of {} tokens", config.shape.vocabulary, shape.vocabulary),
        ("target_hidden_size", "hidden states of size {}", config.target_hidden, shape.hidden),
    ):
        if own != theirs:
            raise UnfitError(
                flag,
                f"the drafter was made for a model with {what.format(own)}, but {name} has {theirs}: "
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
    """Whether a drafter's model may be the one at hand: the last part of a folder or hub id decides."""

    def end(name: str) -> str:
        return re.split(r"[/\\]", name.rstrip("/\\"))[-1].lower()

    return end(named) == end(name) or named == verifier_name(name)


def verifier_name(name: str) -> str:
    """By what other programs find a model: models with a name of their own here have a hub id or a folder elsewhere."""
    if name == smollm2.NAME:
        return smollm2.HUB_ID
    return FOLDERS[name].relative_to(ROOT).as_posix() if name in FOLDERS else name


def fc_norms(config: EagleConfig, taps: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all norms that there can be in front of fc."""
    sizes: dict[str, tuple[int, ...]] = {"input_norm.weight": (taps * config.target_hidden,)}
    return sizes | {f"fc_norm.{tap}.weight": (config.target_hidden,) for tap in range(taps)}


def _names(stored: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """The stored names of the weights by ours."""
    names = dict[str, str]()
    for name in stored:
        short = name.removeprefix("model.")
        for old, new in _LAYER.items():
            short = short.replace(old, new, 1) if short.startswith(old) else short
        names[short] = name
    return names


def _check_tensors(
    config: EagleConfig,
    taps: Sequence[int],
    found: Mapping[str, tuple[int, ...]],
    model: AnyModel,
    *,
    lenient: bool,
) -> None:
    """Raise ModelError unless all weights are there in their sizes, and none too many."""
    hidden, draft, vocabulary = config.shape.hidden, config.draft_vocabulary, model.shape.vocabulary
    wanted = config.tensors(len(taps))
    sizes = ((draft, hidden), (vocabulary, hidden), (draft,), (vocabulary,))
    for name, size in zip(_OPTIONAL, sizes, strict=True):
        if name in found:
            wanted[name] = size
    if lenient:
        norms = {name: size for name, size in fc_norms(config, len(taps)).items() if name in found}
        wanted = {name: size for name, size in wanted.items() if not name.startswith(_FC_NORMS)} | norms
    for name in sorted(found.keys() ^ wanted.keys()):
        state = "missing" if name in wanted else "one too many"
        raise UnfitError(
            "tensors",
            f"the drafter's weight {name[:80]} is {state}: its files and config.json do not belong together",
        )
    for name, size in wanted.items():
        if found[name] != size:
            raise UnfitError(
                "shapes",
                f"the drafter's {name} has shape {list(found[name])[:8]}, not {list(size)}: name another one",
            )
    if "embed_tokens.weight" not in found and hidden != model.shape.hidden:
        raise UnfitError(
            "shapes", "the drafter brings no embeddings, and the target's are of another size: fetch it again"
        )
    if "lm_head.weight" not in found and hidden != model.shape.hidden:
        raise UnfitError(
            "shapes", "the drafter brings no output layer, and the target's is of another size: fetch it again"
        )
    if draft != vocabulary and not found.keys() & {"d2t", "t2d"}:
        raise UnfitError(
            "vocabulary_map",
            f"the drafter drafts {draft} of {vocabulary} tokens, but no d2t says which: fetch it again",
        )


def _ids(config: EagleConfig, mapping: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
    """The target's ids of the tokens that may be drafted; None: all."""
    draft, vocabulary = config.draft_vocabulary, config.shape.vocabulary
    offsets, known = mapping.get("d2t"), mapping.get("t2d")
    if offsets is not None and offsets.dtype not in (torch.int64, torch.int32):
        raise UnfitError(
            "vocabulary_map", f"the drafter's d2t is stored as {offsets.dtype}, not as whole numbers: fetch it again"
        )
    if known is not None and known.dtype != torch.bool:
        raise UnfitError(
            "vocabulary_map", f"the drafter's t2d is stored as {known.dtype}, not as true and false: fetch it again"
        )
    if draft == vocabulary:
        return None
    listed = None if known is None else known.nonzero().flatten()
    ids = listed if offsets is None else offsets.long() + torch.arange(draft)
    assert ids is not None
    fine = len(ids) == draft and int(ids.min()) >= 0 and int(ids.max()) < vocabulary and len(set(ids.tolist())) == draft
    if not fine or (listed is not None and not torch.equal(ids.sort().values, listed)):
        raise UnfitError(
            "vocabulary_map",
            f"d2t and t2d of the drafter must name the same {draft} of the model's {vocabulary} tokens, each once: "
            "make the mapping again",
        )
    return ids


def _digest(raw: Mapping[str, JSON], weights: Weights) -> str:
    digest = hashlib.sha256(json.dumps(raw, sort_keys=True, default=str).encode())
    for name in sorted(weights):
        digest.update(weights[name].contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
