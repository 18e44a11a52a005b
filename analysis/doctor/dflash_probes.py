"""Which changes of a DFlash drafter's wiring and weights are tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from .edits import HeadSizes, block_edits, exchanged_layers, layer_edits, negated, norm_scales, shares_of, swapped
from .feature_probes import FeatureProbes, FeatureWiring
from .probes import Probe, edit_probes, on, probe


@dataclass(frozen=True, slots=True)
class DFlashWiring(FeatureWiring):
    """The settings that a drafter's files, or the program that runs it, may get wrong."""

    normed: bool = True  # whether features pass hidden_norm
    edge: str = "the root"  # what a window reaches back from; or "each row"


class DFlashProbes(FeatureProbes):
    """The changes of one drafter's wirings."""

    masks: Sequence[int] = ()  # tokens that may be the mask
    published: bool = True  # whether config.json has the form of the library speculators

    def _flags(self, wiring: DFlashWiring) -> list[Probe]:
        config, probes = wiring.config, list[Probe]()
        wide = not config.from_anchor
        remedy = f"set sample_from_anchor to {str(wide).lower()} in config.json"
        name, seen = f"sample_from_anchor {on(wide)}", replace(config, from_anchor=wide)
        probes.append(probe(wiring, name, "sample_from_anchor", config.from_anchor, wide, remedy, config=seen))
        slides, layers = tuple(window is not None for window in config.shape.windows), config.shape.layers
        kinds = {"both ways": (False,) * layers, "backwards alone": (True,) * layers}
        kinds["backwards alone in sliding layers"] = slides
        others = {causal: kind for kind, causal in reversed(kinds.items()) if causal != config.causal}
        for causal, kind in others.items():
            name, seen = f"blocks read {kind}", replace(config, causal=causal)
            remedy = self._causal_remedy(kind, causal, slides)
            probes.append(probe(wiring, name, "causal", [*config.causal], [*causal], remedy, config=seen))
        normed = not wiring.normed
        name, remedy = f"hidden_norm {on(normed)}", f"read features as {'hidden_norm' if normed else 'fc'} leaves them"
        probes.append(probe(wiring, name, "hidden_norm", wiring.normed, normed, remedy, normed=normed))
        if any(slides):
            edge = "each row" if wiring.edge == "the root" else "the root"
            name, remedy = f"window counted from {edge}", f"count the window of all rows of a block from {edge}"
            probes.append(probe(wiring, name, "window_edge", wiring.edge, edge, remedy, edge=edge))
        return probes

    def _causal_remedy(self, kind: str, causal: tuple[bool, ...], slides: tuple[bool, ...]) -> str:
        """Name the entry of config.json that says so, where there is one."""
        sliding_alone = all(sliding for sliding, read in zip(slides, causal, strict=True) if read)
        if self.published and any(slides) and sliding_alone:
            return f"set sliding_window_non_causal to {str(not any(causal)).lower()} in config.json"
        if not self.published and len({*causal}) == 1:
            return f"set dflash_config.causal to {str(causal[0]).lower()} in config.json"
        return f"let the rows of a block read it {kind}"

    def _tap_entry(self, wiring: DFlashWiring) -> tuple[str, int]:
        return ("aux_hidden_state_layer_ids", 0) if self.published else ("dflash_config.target_layer_ids", 1)

    def _feature_remedy(self, shift: int) -> str:
        return (
            f"let every position have the feature {-shift} before it" if shift else "let features keep their positions"
        )

    def edits(self, wiring: DFlashWiring) -> Sequence[Probe]:
        """Try other mask tokens; put weights into other orders, change signs, and divide norms."""
        weights, shape, layers = self._weights, wiring.config.shape, self._ats(wiring)
        norms = [name for name, weight in weights.items() if weight.dim() == 1 and name != "norm.weight"]
        edits = [
            *block_edits("fc.weight", len(wiring.taps)),
            *layer_edits(weights, layers, HeadSizes(shape.heads, shape.kv_heads, shape.head_dim)),
            *norm_scales(weights, [name for name in norms if "norm" in name]),
            negated("fc.weight"),
            swapped("hidden_norm.weight", "norm.weight", "norm_order"),
            *(exchanged_layers(weights, one, other) for one, other in pairwise(layers)),
        ]
        return [*self._masks(wiring), *edit_probes(wiring, edits)]

    def _masks(self, wiring: DFlashWiring) -> list[Probe]:
        config, entry = wiring.config, f"{'' if self.published else 'dflash_config.'}mask_token_id"
        return [
            probe(
                wiring,
                f"mask token {mask}",
                "mask_token_id",
                config.mask,
                mask,
                f"set {entry} to {mask} in config.json",
                config=replace(config, mask=mask),
            )
            for mask in self.masks
            if mask != config.mask
        ]

    def shares(self, wiring: DFlashWiring) -> Sequence[Probe]:
        """Scale down what each layer and each tapped layer adds."""
        layers = self._ats(wiring)
        edits = self._state_shares(wiring)
        for what, name in {"attention": "self_attn.o_proj", "feed-forward parts": "mlp.down_proj"}.items():
            edits += shares_of(f"the {what} of all layers", [f"{at}{name}.weight" for at in layers], vital=True)
            for at in layers if len(layers) > 1 else ():
                edits += shares_of(f"the {what} of {at.rstrip('.')}", [f"{at}{name}.weight"])
        return edit_probes(wiring, edits)

    @staticmethod
    def _ats(wiring: DFlashWiring) -> list[str]:
        return [f"layers.{layer}." for layer in range(wiring.config.shape.layers)]
