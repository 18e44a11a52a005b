"""Examines a Kangaroo adapter: the layer that it follows, its rotary positions and its mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from decoding.errors import UnfitError
from decoding.model.rope import RopeTables
from decoding.model.split import SplitDecoder
from decoding.parts.adapter import Adapter, forward_rows, rotation, visible
from decoding.parts.adapter_config import AdapterConfig
from decoding.parts.adapter_files import StoredAdapter, read_adapter

from .edits import Edit, HeadSizes, edited, layer_edits, norm_scales, shares_of
from .names import names_in
from .probes import Check, Probe, chains, edit_probes, probe, probe_dtype
from .rest import check_dtype, check_eps, check_norms, check_numbers, is_young
from .rotary import rotary_changes

if TYPE_CHECKING:
    from decoding.model.decoder import Decoder
    from decoding.model.split import AnyDecoder

    from .texts import Text

_DEPTH = 5
_NEAR = 2  # layers from the exit that are tried instead of it
_WINDOW = 64  # tried where neither the adapter nor the target has a window


@dataclass(frozen=True, slots=True)
class KangarooWiring:
    """The settings that an adapter's files, or the program that runs it, may get wrong."""

    config: AdapterConfig
    dtype: torch.dtype
    rope: Mapping[str, Any]  # the settings of its rotary embedding; a configuration has a base alone
    normed: bool = False  # whether what enters the adapter has been through the target's final norm
    edits: tuple[Edit, ...] = ()  # of the weights


class ExaminedAdapter:
    """An adapter, as its folder holds it."""

    method, apart = "kangaroo", ""

    def __init__(self, folder: str, model: AnyDecoder, loaded: str = "") -> None:  # its configuration has a hash
        self.folder: Path | None = Path(folder)
        self.model, self._refused = model, list[Check]()
        self._stored, self._names = self._read(folder), names_in("kangaroo", folder)
        stored = self._stored
        self._adapter = Adapter(stored.config, stored.weights, model, stored.about, stored.vocabulary)
        self.drafted = None if stored.vocabulary is None else stored.vocabulary.ids
        self._cast = dict[torch.dtype, Mapping[str, torch.Tensor]]()
        self.about, self.depth, self.young = stored.about, _DEPTH, is_young(stored.weights)
        self.given = KangarooWiring(
            stored.config, model.dtype, {"rope_type": "default", "rope_theta": stored.config.rope_theta}
        )

    def _read(self, folder: str) -> StoredAdapter:
        try:
            return read_adapter(folder, self.model)
        except UnfitError as error:
            stored = read_adapter(folder, self.model, lenient=True)  # raises what nothing can be measured with
            given, better = stored.config.base_hash[:12], self.model.card.hash[:12]
            self._refused.append(Check("verifier", error.flag, False, str(error), given, better))
            return stored

    def checks(self) -> Sequence[Check]:
        """Check what the files show."""
        stored, shape = self._stored, self.model.shape
        config = stored.config
        fits = Check("verifier", "verifier", fine=True, sentence="config.json names this model, or none")
        kept = "all tokens" if stored.vocabulary is None else stored.vocabulary.about
        return [
            *(self._refused or [fits]),
            *self._names,
            Check("shapes", "shapes", fine=True, sentence=f"{len(stored.weights)} weights have the model's sizes"),
            Check("exit layer", "exit_layer", fine=True, sentence=f"after {config.exit_layer} of {shape.layers}"),
            Check("vocabulary", "vocabulary_map", fine=True, sentence=f"drafts {kept}"),
            check_norms(stored.weights),
            check_eps(config.eps, shape.eps),
            *check_numbers(stored.weights),
            check_dtype(stored.weights, self.model.dtype),
        ]

    def layers(self) -> Sequence[int]:
        """Return the exit layer and those near it."""
        exit_layer = self._stored.config.exit_layer
        return [layer for layer in range(exit_layer - _NEAR, exit_layer + _NEAR + 1) if self._has(layer)]

    def probes(self, wiring: KangarooWiring) -> Sequence[Probe]:
        """Flip every entry, or move it by one."""
        probes, config = list[Probe](), wiring.config
        for layer in self.layers():
            if layer != config.exit_layer:
                name, remedy = f"exit layer {layer}", f"set exit_layer to {layer} in config.json"
                moved = replace(config, exit_layer=layer)
                probes.append(probe(wiring, name, "exit_layer", config.exit_layer, layer, remedy, config=moved))
        normed = not wiring.normed
        name = f"final norm before the adapter {'on' if normed else 'off'}"
        remedy = f"give the adapter the states {'after the final norm' if normed else 'as they leave the layer'}"
        probes.append(probe(wiring, name, "normed", wiring.normed, normed, remedy, normed=normed))
        target = self._sections[0].rope
        for change in rotary_changes(target.with_parameters(wiring.rope), target):
            name, flag, given, other, remedy, parameters = change
            if flag == "rope_scaling":  # its configuration has no entry for it
                remedy = f"train the adapter with rotary scaling {other}: it rotates as the target does"
            probes.append(probe(wiring, name, flag, given, other, remedy, rope=parameters))
        if (eps := self.model.shape.eps) != config.eps:
            name, remedy = f"epsilon {eps:g}", f"set eps to {eps:g} in config.json"
            probes.append(probe(wiring, name, "rms_norm_eps", config.eps, eps, remedy, config=replace(config, eps=eps)))
        window = 0 if config.window else self.model.window or _WINDOW
        name, remedy = f"window {window or 'off'}", f"set window to {window} in config.json"
        seen = replace(config, window=window)
        probes.append(probe(wiring, name, "window", config.window, window, remedy, config=seen))
        return [*probes, probe_dtype(wiring, "adapter")]

    def guess(
        self, wiring: KangarooWiring, text: Text, places: Sequence[int], depth: int
    ) -> torch.Tensor:  # (P, depth)
        """Return the likeliest chain at every position."""
        best = self._logits(wiring, text, range(places[0], places[-1] + depth)).argmax(-1)
        if self.drafted is not None:
            best = self.drafted[best]
        return chains(best, [place - places[0] for place in places], depth)

    def rows(self, wiring: KangarooWiring, text: Text, places: Sequence[int]) -> tuple[torch.Tensor, list[int]]:
        """Return the logits of the first guess at every position, and the target's rows for the same tokens."""
        return self._logits(wiring, text, places), [*places]

    def edits(self, wiring: KangarooWiring) -> Sequence[Probe]:
        """Put weights into other orders, change signs, and divide norms."""
        weights, config = self._stored.weights, wiring.config
        norms = [name for name, weight in weights.items() if weight.dim() == 1 and name != "norm.weight"]
        edits = [
            *layer_edits(weights, [""], HeadSizes(config.heads, config.kv_heads, config.head_dim)),
            *norm_scales(weights, norms),
        ]
        return edit_probes(wiring, edits)

    def shares(self, wiring: KangarooWiring) -> Sequence[Probe]:
        """Scale down what each part of the adapter adds."""
        parts = {
            "the attention's output": "self_attn.o_proj.weight",
            "the feed-forward part's output": "mlp.down_proj.weight",
        }
        named = [(what, name) for what, name in parts.items() if name in self._stored.weights]
        return edit_probes(wiring, [edit for what, name in named for edit in shares_of(what, [name], vital=True)])

    def _logits(self, wiring: KangarooWiring, text: Text, places: Sequence[int]) -> torch.Tensor:  # (P, n)
        config, stop = wiring.config, places[-1] + 1
        states = text.states[config.exit_layer][:stop]
        x = self._sections[-1].final(states) if wiring.normed else states
        rows = torch.arange(stop, device=x.device)
        seen = visible(rows, rows, config.window)
        if wiring.rope["rope_type"] == "default":
            turn = rotation(replace(config, rope_theta=wiring.rope["rope_theta"]), rows, wiring.dtype)
        else:
            cos, sin = self._sections[0].rope.with_parameters(wiring.rope).tables(0, stop)
            turn = RopeTables(cos[:stop].to(wiring.dtype), sin[:stop].to(wiring.dtype))
        out = forward_rows(config, self._weights(wiring), x[None].to(wiring.dtype), rows, seen, turn)[0]
        return self._adapter.logits(out[[*places]].to(self.model.dtype))

    def _weights(self, wiring: KangarooWiring) -> Mapping[str, torch.Tensor]:
        dtype = wiring.dtype
        if dtype not in self._cast:
            stored = self._stored.weights.items()
            self._cast[dtype] = {name: weight.to(self.model.device, dtype) for name, weight in stored}
        return edited(self._cast[dtype], wiring.edits)

    @property
    def _sections(self) -> Sequence[Decoder]:
        model = self.model
        return model.sections if isinstance(model, SplitDecoder) else (model,)

    def _has(self, layer: int) -> bool:
        return 1 <= layer <= self.model.shape.layers
