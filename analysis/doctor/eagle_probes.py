"""Lists the changes of an EAGLE-3 drafter's wiring and weights to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from decoding.parts.eagle_config import FLAGS

from .edits import HeadSizes, block_edits, halves_edit, layer_edits, norm_scales, shares_of
from .feature_probes import FeatureProbes, FeatureWiring
from .probes import Probe, edit_probes, on, probe

_AT = "layers.0."
_FED_NORMS = [f"{_AT}{name}.weight" for name in ("input_layernorm", "hidden_norm", "post_attention_layernorm")]
_INPUTS = [f"{_AT}self_attn.{which}_proj.weight" for which in "qkv"]  # of the embedding, then of the feature


class EagleProbes(FeatureProbes):
    """The changes of one drafter's wirings."""

    def _flags(self, wiring: FeatureWiring) -> list[Probe]:
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

    def _tap_entry(self, wiring: FeatureWiring) -> tuple[str, int]:
        nested = wiring.config.nested_taps  # whose numbers are one less
        return f"{'eagle_config.' if nested else ''}eagle_aux_hidden_state_layer_ids", int(nested)

    def edits(self, wiring: FeatureWiring) -> Sequence[Probe]:
        """Put weights into other orders, change signs, and divide norms."""
        weights, shape = self._weights, wiring.config.shape
        norms = [name for name in _FED_NORMS if name in weights]
        edits = [
            halves_edit(_INPUTS),
            *block_edits("fc.weight", len(wiring.taps)),
            *layer_edits(weights, [_AT], HeadSizes(shape.heads, shape.kv_heads, shape.head_dim)),
            *norm_scales(weights, norms),
        ]
        return edit_probes(wiring, edits)

    def shares(self, wiring: FeatureWiring) -> Sequence[Probe]:
        """Scale down what each part of the drafter adds."""
        hidden = wiring.config.shape.hidden
        edits = [
            *shares_of("the attention's output", [f"{_AT}self_attn.o_proj.weight"], vital=True),
            *shares_of("the feed-forward part's output", [f"{_AT}mlp.down_proj.weight"], vital=True),
            *shares_of("the token's embedding", _INPUTS, slice(0, hidden)),
            *shares_of("the feature's part of q, k and v", _INPUTS, slice(hidden, 2 * hidden)),
        ]
        for which, name in zip("qkv", _INPUTS, strict=True):  # damage of one of them hides behind what the others do
            edits += shares_of(f"the token's embedding in {which}", [name], slice(0, hidden))
            edits += shares_of(f"the feature's part of {which}", [name], slice(hidden, 2 * hidden))
        return edit_probes(wiring, [*edits, *self._state_shares(wiring)])
