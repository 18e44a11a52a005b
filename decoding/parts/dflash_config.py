"""The configuration of a DFlash drafter, read from the published forms of such drafters.

There are two forms of config.json. The format of the library speculators has `speculators_model_type` "dflash" and the
sizes of the layers below `transformer_layer_config`. The form that DFlash's authors write is flat, with the
architecture DFlashDraftModel and an entry `dflash_config`; it numbers the tapped layers by the layer that a state
leaves, one fewer than ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from ..errors import ModelError, UnfitError
from ..model.config import Shape, read_shape
from ..model.rope import Rope
from ..params import shown
from ..types import JSON
from .drafter_config import check_kind, flag_in, size_in, transformers_config, verifier_in

MOST_BLOCK, _MOST_LAYERS, _MOST_TAPS = 256, 64, 64
_NESTED = "dflash_config"  # of the authors' form


@dataclass(frozen=True, slots=True)
class DFlashConfig:
    """Sizes and switches of a drafter, and the model that it was trained for."""

    shape: Shape  # of its layers; the vocabulary is the target's, and a window counts tokens before the block
    layer: Mapping[str, JSON]  # the same in transformers' names
    draft_vocabulary: int
    target_hidden: int
    taps: tuple[int, ...]  # the target's layers whose inputs it reads
    block: int  # rows that it was trained to read at once: the root and mask tokens
    mask: int  # the mask token's id
    from_anchor: bool  # whether a row predicts the token after it, and not its own: then the root's row guesses too
    causal: tuple[bool, ...]  # per layer: whether a row of the block sees only the rows before it
    verifier: str = ""  # the model's name

    @property
    def guesses(self) -> int:
        """Return the number of tokens that a whole block guesses."""
        return self.block - (not self.from_anchor)

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return names and shapes of the required weights."""
        shape = self.shape
        sizes: dict[str, tuple[int, ...]] = {"fc.weight": (shape.hidden, len(self.taps) * self.target_hidden)}
        for layer in range(shape.layers):
            sizes |= {f"layers.{layer}.{name}": size for name, size in shape.layer_tensors()}
        return sizes | dict.fromkeys(("hidden_norm.weight", "norm.weight"), (shape.hidden,))

    def rope(self, device: torch.device, dtype: torch.dtype) -> Rope:
        """Make the rotary embedding of the layers."""
        return Rope(transformers_config(self.layer), self.shape, device, dtype)


def read_dflash_config(raw: Mapping[str, JSON]) -> DFlashConfig:
    """Read config.json in either form; the ModelError for any other drafter names its kind."""
    check_kind(raw, "dflash")
    published = "speculators_model_type" in raw
    layer, nested = raw.get("transformer_layer_config") if published else raw, raw.get(_NESTED)
    if not isinstance(layer, dict):
        raise ModelError("the drafter's config.json has no transformer_layer_config: fetch it again")
    settings = {**raw, **nested} if isinstance(nested, dict) else raw
    layer, wide = _layers(layer, settings), settings.get("sample_from_anchor")
    shape = read_shape(transformers_config(layer))
    draft, hidden, mask = (settings.get(name) for name in ("draft_vocab_size", "target_hidden_size", "mask_token_id"))
    block = size_in("block_size", settings.get("block_size"))
    if not 2 <= block <= MOST_BLOCK:
        raise ModelError(f"block_size in the drafter's config.json must be from 2 to {MOST_BLOCK}, not {block}")
    if type(mask) is not int or not 0 <= mask < shape.vocabulary:
        raise UnfitError(
            "mask_token_id",
            f"mask_token_id in the drafter's config.json is {shown(mask)}, which is no token of {shape.vocabulary}: "
            "fetch it again",
        )
    return DFlashConfig(
        shape,
        layer,
        shape.vocabulary if draft is None else size_in("draft_vocab_size", draft),
        shape.hidden if hidden is None else size_in("target_hidden_size", hidden),
        _taps(settings, published),
        block,
        mask,
        flag_in(settings, "sample_from_anchor") if wide is not None else False,
        _causal(settings, shape, published),
        verifier_in(raw),
    )


def _layers(layer: Mapping[str, JSON], settings: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the layers' configuration as transformers reads it."""
    family = layer.get("model_type", "qwen3")
    if family != "qwen3":
        raise ModelError(f"DFlash drafters with layers of type {shown(family)} cannot be run; supported is qwen3")
    for name in ("hidden_size", "intermediate_size", "vocab_size", "num_attention_heads", "num_key_value_heads"):
        size_in(name, layer.get(name))
    if (layers := size_in("num_hidden_layers", layer.get("num_hidden_layers"))) > _MOST_LAYERS:
        raise ModelError(f"the drafter's config.json names {layers} layers: at most {_MOST_LAYERS} can be run")
    kinds, window = layer.get("layer_types"), layer.get("sliding_window")
    if flag_in(settings, "use_swa"):
        kinds, window = ["sliding_attention"] * layers, settings.get("swa_window_size")
    if not isinstance(kinds, list) or "sliding_attention" not in kinds:
        return {**layer, "model_type": family}
    # transformers drops the window of a Qwen3 configuration that does not switch it on too.
    sliding = {"sliding_window": size_in("sliding_window", window), "use_sliding_window": True}
    return {**layer, "model_type": family, "layer_types": kinds, **sliding}


def _taps(settings: Mapping[str, JSON], published: bool) -> tuple[int, ...]:
    """Read the tapped layers, each by the number of layers before it."""
    name, shift = ("aux_hidden_state_layer_ids", 0) if published else ("target_layer_ids", 1)
    ids = settings.get(name)
    if ids in (None, []):
        raise UnfitError(
            "taps", f"the drafter's config.json lacks {name}, the target's layers that it reads: fetch it again"
        )
    if not isinstance(ids, list) or len(ids) > _MOST_TAPS or not all(type(each) is int for each in ids):
        raise ModelError(f"{name} in the drafter's config.json must be a list of layers, not {shown(ids)}")
    taps = tuple(int(str(each)) + shift for each in ids)
    if taps[0] < 0 or any(one >= other for one, other in zip(taps, taps[1:], strict=False)):
        raise ModelError(f"{name} in the drafter's config.json must be layers in rising order, not {shown(ids)}")
    return taps


def _causal(settings: Mapping[str, JSON], shape: Shape, published: bool) -> tuple[bool, ...]:
    """Return for each layer whether a row of the block sees only the rows before it.

    Without an entry that says so, layers that see the whole text do not; sliding layers do in the authors' form.
    """
    slides = [window is not None for window in shape.windows]
    if published:
        given = settings.get("sliding_window_non_causal")
        causal = given is not None and not flag_in(settings, "sliding_window_non_causal")
        return tuple(causal and sliding for sliding in slides)
    for name in ("is_causal", "causal"):
        if settings.get(name) is not None:
            return (flag_in(settings, name),) * shape.layers
    return tuple(sliding and not flag_in(settings, "use_swa") for sliding in slides)
