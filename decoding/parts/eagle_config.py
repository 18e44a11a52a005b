"""The configuration of an EAGLE-3 drafter, read from the published forms of such drafters.

There are two forms of config.json. The format of the library speculators has `speculators_model_type` "eagle3" and the
sizes of the layer below `transformer_layer_config`. The form that EAGLE's authors and SpecForge write is flat, with the
architecture LlamaForCausalLMEagle3; it numbers the tapped layers by the layer that a state leaves, one fewer than ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from ..errors import ModelError
from ..model.config import Shape, read_shape
from ..model.rope import Rope
from ..params import shown
from ..types import JSON
from .drafter_config import check_kind, flag_in, size_in, transformers_config, verifier_in

LAYERS = ("llama", "qwen3")  # kinds of layers that a drafter may have
FLAGS = ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output")
# Switches of NVIDIA Model Optimizer, and the values that can be run.
_FIXED = {
    **dict.fromkeys(("use_input_layernorm_in_first_layer", "use_last_layernorm", "use_aux_hidden_state"), True),
    "use_mtp_layernorm": False,
}
_TAPS = "eagle_aux_hidden_state_layer_ids"


@dataclass(frozen=True, slots=True)
class EagleConfig:
    """Sizes and switches of a drafter, and the model that it was trained for."""

    shape: Shape  # of its one layer; the vocabulary is the target's
    layer: Mapping[str, JSON]  # the same in transformers' names
    draft_vocabulary: int
    target_hidden: int
    taps: tuple[int, ...] | None  # the layers whose inputs it reads; None leaves them to `usual_taps`
    norm_before_residual: bool = False  # the layer's residual is the normed feature
    norm_before_fc: bool = False  # one norm over all tapped states
    fc_norm: bool = False  # a norm for each of them
    norm_output: bool = False  # the next feature is the layer's output after the final norm
    verifier: str = ""  # the model's name
    nested_taps: bool = False  # eagle_config lists the taps, numbered by the layer that a state leaves

    @property
    def window(self) -> int:
        """Return the layer's sliding window in tokens; 0: none."""
        return self.shape.windows[0] or 0

    def tensors(self, taps: int) -> dict[str, tuple[int, ...]]:
        """Return names and shapes of the required weights, for `taps` tapped layers."""
        shape, states = self.shape, taps * self.target_hidden
        sizes: dict[str, tuple[int, ...]] = {"fc.weight": (shape.hidden, states)}
        if self.norm_before_fc:
            sizes["input_norm.weight"] = (states,)
        if self.fc_norm:
            sizes |= {f"fc_norm.{tap}.weight": (self.target_hidden,) for tap in range(taps)}
        for name, size in shape.layer_tensors():
            inputs = name in {f"self_attn.{kind}_proj.weight" for kind in "qkv"}
            sizes[f"layers.0.{name}"] = (size[0], 2 * size[1]) if inputs else size
        return sizes | {"layers.0.hidden_norm.weight": (shape.hidden,), "norm.weight": (shape.hidden,)}

    def rope(self, device: torch.device, dtype: torch.dtype) -> Rope:
        """Make the rotary embedding of the layer."""
        return Rope(transformers_config(self.layer), self.shape, device, dtype)


def usual_taps(layers: int) -> tuple[int, ...]:
    """Return a low, a middle and a high layer: other programs' choice if a configuration names none."""
    taps = (2, layers // 2, layers - 3)
    return taps if taps[0] < taps[1] < taps[2] else tuple(sorted({1, max(1, layers // 2), max(1, layers - 1)}))


def read_config(raw: Mapping[str, JSON]) -> EagleConfig:
    """Read config.json in either form; the ModelError for any other drafter names its kind."""
    check_kind(raw, "eagle3")
    published = "speculators_model_type" in raw
    layer = raw.get("transformer_layer_config") if published else raw
    if not isinstance(layer, dict):
        raise ModelError("the drafter's config.json has no transformer_layer_config: fetch it again")
    family = layer.get("model_type", "qwen3" if published else "llama")
    if family not in LAYERS:
        raise ModelError(f"drafters with a layer of type {shown(family)} cannot be run; supported are llama and qwen3")
    if layer.get("num_hidden_layers", 1) != 1:
        raise ModelError(f"drafters of {shown(layer['num_hidden_layers'])} layers cannot be run: name one of one layer")
    layer = {**layer, "model_type": family, "num_hidden_layers": 1}
    shape = _shape(layer)
    flags = {name: flag_in(raw, name) for name in FLAGS}
    nested = raw.get("eagle_config")
    for settings in (raw, nested if isinstance(nested, dict) else {}):
        for name, value in _FIXED.items():
            if settings.get(name) not in (None, value):
                raise ModelError(f"{name} in the drafter's config.json is {shown(settings[name])}, which cannot be run")
    if flags["norm_before_fc"] and flags["fc_norm"]:
        raise ModelError("norm_before_fc and fc_norm exclude each other: the drafter's config.json has both")
    draft, hidden = raw.get("draft_vocab_size"), raw.get("target_hidden_size")
    return EagleConfig(
        shape,
        layer,
        shape.vocabulary if draft is None else size_in("draft_vocab_size", draft),
        shape.hidden if hidden is None else size_in("target_hidden_size", hidden),
        _taps(raw),
        **flags,
        verifier=verifier_in(raw),
        nested_taps=raw.get(_TAPS) in (None, []) and isinstance(nested, dict) and nested.get(_TAPS) not in (None, []),
    )


def _shape(layer: Mapping[str, JSON]) -> Shape:
    for name in ("hidden_size", "intermediate_size", "vocab_size", "num_attention_heads", "num_key_value_heads"):
        size_in(name, layer.get(name))
    shape = read_shape(transformers_config(layer))
    if "layer_types" not in layer and layer.get("use_sliding_window"):
        if "max_window_layers" not in layer:
            raise ModelError(
                "use_sliding_window in the drafter's config.json is true, but not whether its one layer slides: "
                'write layer_types, ["sliding_attention"] or ["full_attention"]'
            )
        return shape
    sliding = layer.get("layer_types") == ["sliding_attention"]
    return replace(shape, windows=(size_in("sliding_window", layer.get("sliding_window")) if sliding else None,))


def _taps(raw: Mapping[str, JSON]) -> tuple[int, ...] | None:
    """Read the tapped layers, each by the number of layers before it."""
    nested = raw.get("eagle_config")
    ids, shift = raw.get(_TAPS), 0
    if ids in (None, []) and isinstance(nested, dict):
        ids, shift = nested.get(_TAPS), 1
    if ids in (None, []):  # vLLM takes its usual layers for an empty list too
        return None
    if not isinstance(ids, list) or not 0 < len(ids) <= 64 or not all(type(each) is int for each in ids):
        raise ModelError(f"{_TAPS} in the drafter's config.json must be a list of layers, not {shown(ids)}")
    taps = tuple(each + shift for each in ids)
    if taps[0] < 0 or any(one >= other for one, other in zip(taps, taps[1:], strict=False)):
        raise ModelError(f"{_TAPS} in the drafter's config.json must be layers in rising order, not {shown(ids)}")
    return taps
