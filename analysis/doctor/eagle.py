"""EAGLE-3's drafter under examination: its wiring, and every entry of it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import linear

from decoding.errors import UnfitError
from decoding.model.split import SplitDecoder
from decoding.parts.eagle_config import FLAGS, EagleConfig
from decoding.parts.eagle_files import StoredEagle, fc_norms, read_eagle

from .eagle_guesses import EagleGuesses
from .probes import Check, Probe, on, probe, probe_dtype
from .rest import check_dtype, check_embedding, check_norms, check_verifier

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text

_WINDOW = 64  # tried where neither the drafter nor the target has a window
_BASE = 1e4  # of a rotary embedding where a configuration names none
_DEPTH = 5


@dataclass(frozen=True, slots=True)
class EagleWiring:
    """All that a drafter's files, or the program that runs it, may have wrong."""

    config: EagleConfig
    taps: tuple[int, ...]
    dtype: torch.dtype
    embedding: str = "own"  # or "target"
    map_shift: int = 0  # added to the ids of the draft vocabulary
    feature_shift: int = 0  # positions between a token and its feature, beside the one of training
    draft_shift: int = 0  # positions between the text and the guesses after it, beside none


class ExaminedEagle:
    """A drafter, as its folder holds it."""

    method = "eagle3"

    def __init__(self, folder: str, model: AnyDecoder) -> None:
        self._model, self._refused = model, list[Check]()
        self._stored = self._read(folder)
        self.about, self.depth = self._stored.about, _DEPTH
        weights = dict(self._stored.weights)
        ids = weights.pop("ids", None)
        self._ids = None if ids is None else ids.long().to(model.device)
        self._weights, self._cast = weights, dict[torch.dtype, Mapping[str, torch.Tensor]]()
        self._embeddings = model.embeddings()
        embedding = "own" if "embed_tokens.weight" in weights else "target"
        self.given = EagleWiring(self._stored.config, self._stored.taps, model.dtype, embedding)

    def _read(self, folder: str) -> StoredEagle:
        try:
            return read_eagle(folder, self._model)
        except UnfitError as error:
            stored = read_eagle(folder, self._model, lenient=True)  # raises what nothing can be measured with
            self._refused.append(self._explain(error, stored))
            return stored

    def _explain(self, error: UnfitError, stored: StoredEagle) -> Check:
        config, name = stored.config, self._model.card.name
        if error.flag == "verifier":
            return Check("verifier", "verifier", fine=False, sentence=str(error), given=config.verifier, better=name)
        names = fc_norms(config, len(stored.taps)).keys() & stored.weights.keys()
        flag = "norm_before_fc" if "input_norm.weight" in names or (not names and config.norm_before_fc) else "fc_norm"
        given = getattr(config, flag)
        return Check(flag, flag, fine=False, sentence=str(error), given=given, better=not given)

    def checks(self) -> Sequence[Check]:
        """Check what the files show."""
        config, weights, model = self._stored.config, self._weights, self._model
        checks = [*self._refused]
        if not any(check.name == "verifier" for check in checks):
            checks.append(check_verifier(config.verifier, model.card.name))
        kept = f"{config.draft_vocabulary:,} of {model.shape.vocabulary:,} tokens, each once and in range"
        kept = kept if self._ids is not None else "all tokens can be drafted"
        taps = ", ".join(map(str, self._stored.taps))
        embedding = weights.get("embed_tokens.weight")
        return [
            *checks,
            Check("shapes", "shapes", fine=True, sentence=f"{len(weights)} weights have the sizes of config.json"),
            Check("vocabulary map", "vocabulary_map", fine=True, sentence=kept),
            Check("tapped layers", "taps", fine=True, sentence=f"{taps} of {model.shape.layers}"),
            check_norms(weights),
            check_embedding(embedding, self._embeddings[0]),
            check_dtype(weights, model.dtype),
        ]

    def layers(self) -> Sequence[int]:
        """Return the tapped layers and their neighbours."""
        return sorted({tap + by for tap in self._stored.taps for by in (-1, 0, 1) if self._has(tap + by)})

    def probes(self, wiring: EagleWiring) -> Sequence[Probe]:
        """Flip every entry, or move it by one."""
        return [
            *self._flags(wiring),
            *self._taps(wiring),
            *self._places(wiring),
            *self._tables(wiring),
            *self._numbers(wiring),
        ]

    def _flags(self, wiring: EagleWiring) -> list[Probe]:
        config, probes = wiring.config, list[Probe]()
        exclusive = ("norm_before_fc", "fc_norm")
        for flag in FLAGS:
            given = getattr(config, flag)
            if not given and flag in exclusive and any(getattr(config, other) for other in exclusive):
                continue  # the other one is on, and is tried off
            other: dict[str, Any] = {flag: not given}
            name, remedy = f"{flag} {on(not given)}", f"set {flag} to {str(not given).lower()} in config.json"
            probes.append(probe(wiring, name, flag, given, not given, remedy, config=replace(config, **other)))
        return probes

    def _taps(self, wiring: EagleWiring) -> list[Probe]:
        probes, given = list[Probe](), wiring.taps
        moved = [tuple(tap + by for tap in given) for by in (-1, 1)]
        moved += [(*given[:at], given[at] + by, *given[at + 1 :]) for at in range(len(given)) for by in (-1, 1)]
        for taps in moved if len(given) > 1 else moved[:2]:
            rising = all(one < other for one, other in zip(taps, taps[1:], strict=False))
            if rising and all(map(self._has, taps)) and set(taps) <= {*self.layers()}:
                listed = ", ".join(map(str, taps))
                remedy = f"write [{listed}] into eagle_aux_hidden_state_layer_ids, counted from the layers before"
                probes.append(probe(wiring, f"tapped layers {listed}", "taps", [*given], [*taps], remedy, taps=taps))
        return probes

    def _places(self, wiring: EagleWiring) -> list[Probe]:
        """Shift positions. Shifting those of all rows together makes no difference: a rotary embedding encodes
        distances.
        """
        probes = list[Probe]()
        for by in (-1, 1):
            shift = wiring.draft_shift + by
            name, remedy = f"positions of guesses {shift:+d}", f"move the positions of guesses by {by:+d}"
            probes.append(probe(wiring, name, "draft_shift", wiring.draft_shift, shift, remedy, draft_shift=shift))
        for shift in sorted({0, -1} - {wiring.feature_shift}):
            name, remedy = f"features {shift:+d}", f"read every token with the feature {1 - shift} before it"
            probes.append(
                probe(wiring, name, "feature_shift", wiring.feature_shift, shift, remedy, feature_shift=shift)
            )
        return probes

    def _tables(self, wiring: EagleWiring) -> list[Probe]:
        """Try another rotary embedding and another window."""
        probes, config = list[Probe](), wiring.config
        base = _base(config)
        for other in sorted({self._target_base(), _BASE} - {base}):
            whose = "the target's" if other == self._target_base() else "the usual"
            name, remedy = f"rotary base {other:g}, {whose}", f"set rope_theta to {other:g} in config.json"
            rotated = _with_base(config, other)
            probes.append(probe(wiring, name, "rope_theta", base, other, remedy, config=rotated))
        other_window = None if config.window else self._model.window or _WINDOW
        seen, given = replace(config, shape=replace(config.shape, windows=(other_window,))), config.window or None
        name = f"window {other_window}" if other_window else "window off"
        remedy = f"set sliding_window to {other_window}" if other_window else "remove the sliding window"
        remedy = f"{remedy} in config.json"
        return [*probes, probe(wiring, name, "window", given, other_window, remedy, config=seen)]

    def _numbers(self, wiring: EagleWiring) -> list[Probe]:
        """Try another embedding, vocabulary map and dtype."""
        probes, same_size = list[Probe](), wiring.config.shape.hidden == self._model.shape.hidden
        if "embed_tokens.weight" in self._weights and same_size:
            other = "target" if wiring.embedding == "own" else "own"
            remedy = "leave embed_tokens.weight out of the file" if other == "target" else "use embed_tokens.weight"
            name = f"embedding: {other}"
            probes.append(probe(wiring, name, "embedding", wiring.embedding, other, remedy, embedding=other))
        for by in (-1, 1) if self._ids is not None else ():
            shift = wiring.map_shift + by
            name, remedy = f"vocabulary map {shift:+d}", f"add {by} to every entry of d2t, and move t2d with it"
            probes.append(probe(wiring, name, "vocabulary_map", wiring.map_shift, shift, remedy, map_shift=shift))
        return [*probes, probe_dtype(wiring, "drafter")]

    def guess(self, wiring: EagleWiring, text: Text, places: Sequence[int], depth: int) -> torch.Tensor:  # (P, depth)
        """Return the likeliest chain at every position."""
        return EagleGuesses(self, wiring, text, places).guess(depth)

    def weights(self, dtype: torch.dtype, config: EagleConfig) -> Mapping[str, torch.Tensor]:
        """Return all weights on the model's device; norm scales that the flags ask for and no file has are 1."""
        if dtype not in self._cast:
            self._cast[dtype] = {name: weight.to(self._model.device, dtype) for name, weight in self._weights.items()}
        one = next(iter(self._cast[dtype].values()))
        asked = fc_norms(config, len(self._stored.taps)) if config.norm_before_fc or config.fc_norm else {}
        return {**{name: one.new_ones(size) for name, size in asked.items()}, **self._cast[dtype]}

    def embed(self, wiring: EagleWiring, ids: torch.Tensor) -> torch.Tensor:  # (n,) -> (n, H)
        """Embed tokens."""
        table = self._weights["embed_tokens.weight"] if wiring.embedding == "own" else self._embeddings[0]
        return table.to(ids.device)[ids].to(wiring.dtype)

    def say(self, wiring: EagleWiring, rows: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R,) ids
        """Return the likeliest token after every row."""
        weights = self.weights(wiring.dtype, wiring.config)
        if (output := weights.get("lm_head.weight")) is None:
            output = self._embeddings[1] if self._ids is None else self._embeddings[1][self._ids]
        best = linear(rows, output.to(rows.dtype)).argmax(-1)
        if self._ids is None:
            return best
        return (self._ids[best] + wiring.map_shift).clamp(0, self._model.shape.vocabulary - 1)

    def _target_base(self) -> float:
        model = self._model
        return (model.sections[0] if isinstance(model, SplitDecoder) else model).rope.base

    def _has(self, layer: int) -> bool:
        return 0 <= layer <= self._model.shape.layers


def _base(config: EagleConfig) -> float:
    parameters = config.layer.get("rope_parameters")
    named = parameters.get("rope_theta") if isinstance(parameters, Mapping) else None
    return float(named or config.layer.get("rope_theta") or _BASE)


def _with_base(config: EagleConfig, base: float) -> EagleConfig:
    parameters = config.layer.get("rope_parameters")
    if isinstance(parameters, Mapping):
        return replace(config, layer={**config.layer, "rope_parameters": {**parameters, "rope_theta": base}})
    return replace(config, layer={**config.layer, "rope_theta": base})
