"""Reads entries of a drafter's config.json, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import ModelError
from ..model.config import plain_reason
from ..params import shown
from ..types import JSON

_MOST = 2**24  # of any size in a configuration


class DrafterKind(NamedTuple):
    """A kind of drafter that a configuration can name."""

    what: str  # in a sentence
    part: str = ""  # the option that takes such drafters; empty if they cannot be run here


# By words in configurations; the first word that occurs decides.
KINDS = {
    "peagle": DrafterKind("a P-EAGLE drafter, which guesses all tokens of a step at once after mask tokens"),
    "dflash2": DrafterKind("a DFlash 2 drafter, which chooses the guesses of a block one after the other"),
    "dspark": DrafterKind("a DSpark drafter, which fills a block of mask tokens and chains its guesses"),
    "domino": DrafterKind("a Domino drafter, which fills a block of mask tokens and chains its guesses"),
    "dflash": DrafterKind("a DFlash drafter, which fills a block of mask tokens at once", "dflash"),
    "xpress": DrafterKind("an Xpress drafter, which fills a block of mask tokens at once"),
    "mtp": DrafterKind("a drafter of multi-token prediction, which is a layer of the model that it came with"),
    "nextn": DrafterKind("a drafter of multi-token prediction, which is a layer of the model that it came with"),
    "medusa": DrafterKind("a folder of Medusa heads", "medusa"),
    "eagle3": DrafterKind("an EAGLE-3 drafter", "eagle"),
    "eagle": DrafterKind("a drafter of EAGLE or EAGLE-2, which reads one layer of the target"),
}


def check_kind(raw: Mapping[str, JSON], wanted: str) -> None:
    """Raise ModelError unless a configuration names that kind of drafter."""
    title = KINDS[wanted].what.partition(",")[0]
    named, words = raw.get("speculators_model_type"), _words(raw)
    kind = next((kind for kind in KINDS if kind in words), None)
    if kind == wanted:
        return
    if kind is not None:
        part = KINDS[kind].part
        advice = f": name it with {part}= (--{part})" if part else f"; name {title}"
        raise ModelError(f"this is {KINDS[kind].what}{advice}")
    if not words:
        raise ModelError(f"config.json has neither speculators_model_type nor architectures: name {title}")
    raise ModelError(
        f"config.json names {shown(named or raw.get('architectures'))}, which is no kind of drafter: name {title}"
    )


def _words(raw: Mapping[str, JSON]) -> str:
    """Return what a configuration says of its kind, in small letters without hyphens."""
    named, architectures, nested = raw.get("speculators_model_type"), raw.get("architectures"), raw.get("dflash_config")
    words = [str(each) for each in architectures] if isinstance(architectures, list) and named is None else []
    if named is not None:
        words.append(str(named))
    elif "num_nextn_predict_layers" in raw:
        words.append("mtp")
    if isinstance(nested, dict):
        words.append(str(nested.get("projector_type", "")))
    return " ".join(words).lower().replace("-", "").replace("_", "").strip()


def transformers_config(layer: Mapping[str, JSON]) -> Any:
    """Make transformers' configuration of a drafter's layers."""
    from transformers import AutoConfig

    try:
        return AutoConfig.for_model(**dict(layer))
    except Exception as error:  # validation in transformers raises errors of many kinds
        raise ModelError(f"the drafter's config.json cannot be used: {plain_reason(error)}") from None


def size_in(name: str, value: object) -> int:
    """Return an entry that must be a positive size."""
    if type(value) is not int or not 1 <= value <= _MOST:
        raise ModelError(
            f"{name} in the drafter's config.json must be a whole number from 1 to {_MOST}, not {shown(value)}"
        )
    return value


def flag_in(raw: Mapping[str, JSON], name: str) -> bool:
    """Return an entry that must be true or false; False if it is missing."""
    value = raw.get(name)
    if value is not None and type(value) is not bool:
        raise ModelError(f"{name} in the drafter's config.json must be true or false, not {shown(value)}")
    return bool(value)


def verifier_in(raw: Mapping[str, JSON]) -> str:
    """Read the name of the model that the drafter was trained for, if given."""
    settings = raw.get("speculators_config")
    verifier = settings.get("verifier") if isinstance(settings, dict) else None
    name = verifier.get("name_or_path") if isinstance(verifier, dict) else None
    return name if isinstance(name, str) else ""
