"""Which changes of a wiring are tried with any drafter that reads the target's features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from decoding.model.rope import Rope
from decoding.model.split import SplitDecoder

from .edits import Edit, shares_of
from .probes import Probe, probe, probe_dtype
from .rotary import rotary_changes

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

_WINDOW = 64  # tried where neither the drafter nor the target has a window


@dataclass(frozen=True, slots=True)
class FeatureWiring:
    """The settings that a drafter's files, or the program that runs it, may get wrong."""

    config: Any  # an `EagleConfig` or a `DFlashConfig`
    taps: tuple[int, ...]
    dtype: torch.dtype
    embedding: str = "own"  # or "target"
    map_shift: int = 0  # added to the ids of the draft vocabulary
    by_rows: bool = False  # whether the output layer's rows tell the ids, by the target's rows that are most like them
    feature_shift: int = 0  # positions between a token and its feature, beside the one of training
    draft_shift: int = 0  # positions between the text and the guesses after it, beside none
    output: str = "own"  # the output layer; or "target", the target's rows for the same tokens
    edits: tuple[Edit, ...] = ()  # of the weights


class FeatureProbes(ABC):
    """The changes of one drafter's wirings."""

    def __init__(
        self,
        model: AnyDecoder,
        weights: Mapping[str, torch.Tensor],
        drafted: torch.Tensor | None,
        layers: Sequence[int],  # that may be tapped
        rope: Callable[[Any], Rope],
    ) -> None:
        self._model, self._weights, self._drafted = model, weights, drafted
        self._layers, self._rope = layers, rope

    def probes(self, wiring: Any) -> Sequence[Probe]:
        """Flip every entry, or move it by one."""
        return [
            *self._flags(wiring),
            *self._taps(wiring),
            *self._places(wiring),
            *self._tables(wiring),
            *self._numbers(wiring),
        ]

    @abstractmethod
    def _flags(self, wiring: Any) -> list[Probe]:
        """Flip the entries that only such a drafter has."""

    @abstractmethod
    def _tap_entry(self, wiring: Any) -> tuple[str, int]:
        """Return the entry of config.json that lists the tapped layers, and how much less its numbers are than ours."""

    @abstractmethod
    def edits(self, wiring: Any) -> Sequence[Probe]:
        """Put weights into other orders, change signs, and divide norms."""

    @abstractmethod
    def shares(self, wiring: Any) -> Sequence[Probe]:
        """Scale down what each part of the drafter adds."""

    def _taps(self, wiring: Any) -> list[Probe]:
        probes, given = list[Probe](), wiring.taps
        moved = [tuple(tap + by for tap in given) for by in (-1, 1)]
        moved += [(*given[:at], given[at] + by, *given[at + 1 :]) for at in range(len(given)) for by in (-1, 1)]
        for taps in moved if len(given) > 1 else moved[:2]:
            rising = all(one < other for one, other in zip(taps, taps[1:], strict=False))
            if rising and set(taps) <= {*self._layers}:
                listed = ", ".join(map(str, taps))
                entry, less = self._tap_entry(wiring)
                written = ", ".join(str(tap - less) for tap in taps)
                remedy = f"write [{written}] into {entry} in config.json"
                probes.append(probe(wiring, f"tapped layers {listed}", "taps", [*given], [*taps], remedy, taps=taps))
        return probes

    def _places(self, wiring: Any) -> list[Probe]:
        """Shift positions. Shifting those of all rows together makes no difference: a rotary embedding encodes
        distances.
        """
        probes = list[Probe]()
        for by in (-1, 1):
            shift = wiring.draft_shift + by
            name, remedy = f"positions of guesses {shift:+d}", f"move the positions of guesses by {by:+d}"
            probes.append(probe(wiring, name, "draft_shift", wiring.draft_shift, shift, remedy, draft_shift=shift))
        for shift in sorted({0, -1} - {wiring.feature_shift}):
            name, remedy = f"features {shift:+d}", self._feature_remedy(shift)
            probes.append(
                probe(wiring, name, "feature_shift", wiring.feature_shift, shift, remedy, feature_shift=shift)
            )
        return probes

    def _feature_remedy(self, shift: int) -> str:
        return f"read every token with the feature {1 - shift} before it"

    def _tables(self, wiring: Any) -> list[Probe]:
        """Try another rotary embedding and another window."""
        probes, config = list[Probe](), wiring.config
        held = {key: value for key, value in config.layer.items() if key not in ("rope_scaling", "rope_theta")}
        for *named, parameters in rotary_changes(self._rope(wiring), self._target_rope):
            shape = replace(config.shape, rope=parameters.get("rope_type", "default"))
            seen = replace(config, layer={**held, "rope_parameters": dict(parameters)}, shape=shape)
            probes.append(probe(wiring, *named, config=seen))
        given = min((window for window in config.shape.windows if window), default=None)
        other = None if given else self._model.window or _WINDOW
        seen = replace(config, shape=replace(config.shape, windows=(other,) * len(config.shape.windows)))
        name = f"window {other}" if other else "window off"
        remedy = f"set sliding_window to {other}" if other else "remove the sliding window"
        return [*probes, probe(wiring, name, "window", given, other, f"{remedy} in config.json", config=seen)]

    def _numbers(self, wiring: Any) -> list[Probe]:
        """Try another embedding, output layer, vocabulary map, epsilon and dtype."""
        probes, same_size = list[Probe](), wiring.config.shape.hidden == self._model.shape.hidden
        if "lm_head.weight" in self._weights and same_size:
            if self._drafted is not None and not wiring.by_rows:
                remedy = "let d2t and t2d name the tokens whose rows of the target's output layer lm_head.weight holds"
                name = "vocabulary map by the rows of lm_head.weight"
                probes.append(probe(wiring, name, "vocabulary_map", "own", "by rows", remedy, by_rows=True))
            other = "target" if wiring.output == "own" else "own"
            remedy = "leave lm_head.weight out of the file" if other == "target" else "use lm_head.weight"
            name = f"output layer: {other}"
            probes.append(probe(wiring, name, "output", wiring.output, other, remedy, output=other))
        shape, size = wiring.config.shape, self._model.shape.head_dim
        normed = any(name.endswith("q_norm.weight") for name in self._weights)  # whose scales tell the size of heads
        if size != shape.head_dim and not normed and not (shape.kv_heads * shape.head_dim) % size:
            heads, kv_heads = (count * shape.head_dim // size for count in (shape.heads, shape.kv_heads))
            split = replace(shape, heads=heads, kv_heads=kv_heads, head_dim=size, rotary=size)
            remedy = f"set num_attention_heads to {heads}, num_key_value_heads to {kv_heads} and head_dim to {size}"
            seen, name = replace(wiring.config, shape=split), f"heads of {size} dimensions, as the target's"
            probes.append(
                probe(wiring, name, "head_dim", shape.head_dim, size, f"{remedy} in config.json", config=seen)
            )
        if (eps := self._model.shape.eps) != shape.eps:
            name, remedy = f"epsilon {eps:g}", f"set rms_norm_eps to {eps:g} in config.json"
            seen = replace(wiring.config, shape=replace(shape, eps=eps))
            probes.append(probe(wiring, name, "rms_norm_eps", shape.eps, eps, remedy, config=seen))
        if "embed_tokens.weight" in self._weights and same_size:
            other = "target" if wiring.embedding == "own" else "own"
            remedy = "leave embed_tokens.weight out of the file" if other == "target" else "use embed_tokens.weight"
            name = f"embedding: {other}"
            probes.append(probe(wiring, name, "embedding", wiring.embedding, other, remedy, embedding=other))
        for by in (-1, 1) if self._drafted is not None else ():
            shift = wiring.map_shift + by
            name, remedy = f"vocabulary map {shift:+d}", f"add {by} to every entry of d2t, and move t2d with it"
            probes.append(probe(wiring, name, "vocabulary_map", wiring.map_shift, shift, remedy, map_shift=shift))
        return [*probes, probe_dtype(wiring, "drafter")]

    def _state_shares(self, wiring: Any) -> list[Edit]:
        """Scale down the tapped states of one layer."""
        width = wiring.config.target_hidden
        columns = {tap: slice(at * width, (at + 1) * width) for at, tap in enumerate(wiring.taps)}
        return [
            edit
            for tap, of_tap in columns.items()
            for edit in shares_of(f"the states of layer {tap}", ["fc.weight"], of_tap)
        ]

    @property
    def _target_rope(self) -> Rope:
        return (self._model.sections[0] if isinstance(self._model, SplitDecoder) else self._model).rope
