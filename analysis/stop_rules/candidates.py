"""Lists the rules to replay for each method, and why a record cannot answer for others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from decoding.methods import METHODS
from decoding.methods.eagle3 import Eagle3Params
from decoding.params import Params
from decoding.types import JSON

THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PRODUCTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
_SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48)
_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48)
_RERUN = {  # settings with which a method is run again, by its name
    "suffix": [
        {"alpha": alpha, "c": c, "epsilon": epsilon}
        for alpha, c in ((2.0, 5), (3.0, 8), (5.0, 5), (5.0, 8))
        for epsilon in (0.1, 0.3)
    ]
}
_BOTH = (0.3, 0.6)  # thresholds that are tried with shorter chains too


@dataclass(frozen=True, slots=True)
class ChainSettings:
    """How a method's settings say when its chain ends, besides the length gamma."""

    least: str
    product: bool  # whether the threshold bounds the product of the probabilities, not each of them
    from_text: bool  # whether the drafter knows nothing but the text


CHAINS: Mapping[str, ChainSettings] = {
    "draft_model": ChainSettings("threshold", product=False, from_text=True),
    "kangaroo": ChainSettings("eta", product=False, from_text=True),
    "eagle3": ChainSettings("threshold", product=True, from_text=False),
}


def is_tree(params: Params) -> bool:
    """Return whether these settings draft EAGLE's trees."""
    return isinstance(params, Eagle3Params) and params.form == "tree"


def chain_candidates(length: int, least: float) -> Iterator[tuple[int, float]]:
    """Yield the draft lengths and thresholds that such a record can answer for, the recorded ones first."""
    yield length, least
    shorter = [each for each in _LENGTHS if each < length]
    higher = [each for each in THRESHOLDS if each > least]
    yield from ((each, least) for each in shorter)
    yield from ((length, each) for each in higher)
    yield from ((each, above) for each in shorter if each > 1 for above in _BOTH if above > least)


def tree_candidates(size: int, least: float) -> Iterator[tuple[int, float]]:
    """Yield the tree sizes and thresholds that such a record can answer for, the recorded ones first."""
    yield size, least
    yield from ((each, least) for each in _SIZES if each < size)
    yield from ((size, each) for each in PRODUCTS if each > least)
    yield from ((each, above) for each in _SIZES if 2 < each < size for above in (0.05, 0.2) if above > least)


def settings_candidates(method: str, params: Params) -> Iterator[dict[str, JSON]]:
    """Yield settings of a method that is run again, the recorded ones first and each once."""
    kind, listed = METHODS[method].Params, list[dict[str, Any]]()
    for settings in (params.to_json(), {}, *kind.presets.values(), *_RERUN[method]):
        full = kind.parse(dict(settings)).to_json()
        if full not in listed:
            listed.append(full)
            yield full
