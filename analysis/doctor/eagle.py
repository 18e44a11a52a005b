"""EAGLE-3's drafter under examination: its wiring, and every entry of it changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import linear

from decoding.errors import UnfitError
from decoding.model.rope import Rope
from decoding.model.split import SplitDecoder
from decoding.parts.eagle import Block
from decoding.parts.eagle_config import FLAGS, EagleConfig
from decoding.parts.eagle_files import StoredEagle, fc_norms, read_eagle

from .eagle_guesses import EagleGuesses
from .edits import Edit, HeadSizes, block_edits, edited, halves_edit, layer_edits, norm_scales, shares_of
from .probes import Check, Probe, edit_probes, on, probe, probe_dtype
from .rest import (
    check_dtype,
    check_embedding,
    check_eps,
    check_norms,
    check_rounding,
    check_spoilt,
    check_verifier,
    is_young,
)
from .rotary import rotary_changes
from .rows import check_rows, match_rows

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text

_WINDOW = 64  # tried where neither the drafter nor the target has a window
_DEPTH = 5
_AT = "layers.0."
_FED_NORMS = [f"{_AT}{name}.weight" for name in ("input_layernorm", "hidden_norm", "post_attention_layernorm")]
_INPUTS = [f"{_AT}self_attn.{which}_proj.weight" for which in "qkv"]  # of the embedding, then of the feature


@dataclass(frozen=True, slots=True)
class EagleWiring:
    """All that a drafter's files, or the program that runs it, may have wrong."""

    config: EagleConfig
    taps: tuple[int, ...]
    dtype: torch.dtype
    embedding: str = "own"  # or "target"
    map_shift: int = 0  # added to the ids of the draft vocabulary
    by_rows: bool = False  # whether the output layer's rows tell the ids, by the target's rows that are most like them
    feature_shift: int = 0  # positions between a token and its feature, beside the one of training
    draft_shift: int = 0  # positions between the text and the guesses after it, beside none
    output: str = "own"  # the output layer; or "target", the target's rows for the same tokens
    edits: tuple[Edit, ...] = ()  # of the weights


class ExaminedEagle:
    """A drafter, as its folder holds it."""

    method = "eagle3"

    def __init__(self, folder: str, model: AnyDecoder) -> None:
        self.folder: Path | None = Path(folder)
        self.model, self._refused = model, list[Check]()
        self._stored = self._read(folder)
        self.about, self.depth, self.young = self._stored.about, _DEPTH, is_young(self._stored.weights)
        weights = dict(self._stored.weights)
        ids = weights.pop("ids", None)
        self.drafted = None if ids is None else ids.long().to(model.device)
        self._weights, self._cast = weights, dict[torch.dtype, Mapping[str, torch.Tensor]]()
        self._embeddings = model.embeddings()
        self._by_rows: torch.Tensor | None = None
        self._block: tuple[EagleWiring, Block] | None = None
        self._ropes = dict[tuple[str, int, torch.dtype], Rope]()
        embedding = "own" if "embed_tokens.weight" in weights else "target"
        self.given = EagleWiring(self._stored.config, self._stored.taps, model.dtype, embedding)

    def _read(self, folder: str) -> StoredEagle:
        try:
            return read_eagle(folder, self.model)
        except UnfitError as error:
            stored = read_eagle(folder, self.model, lenient=True)  # raises what nothing can be measured with
            self._refused.append(self._explain(error, stored))
            return stored

    def _explain(self, error: UnfitError, stored: StoredEagle) -> Check:
        config, name = stored.config, self.model.card.name
        if error.flag == "verifier":
            return Check("verifier", "verifier", fine=False, sentence=str(error), given=config.verifier, better=name)
        if error.flag in FLAGS:
            return Check(error.flag, error.flag, fine=False, sentence=str(error), better="written down")
        names = fc_norms(config, len(stored.taps)).keys() & stored.weights.keys()
        flag = "norm_before_fc" if "input_norm.weight" in names or (not names and config.norm_before_fc) else "fc_norm"
        given = getattr(config, flag)
        return Check(flag, flag, fine=False, sentence=str(error), given=given, better=not given)

    def checks(self) -> Sequence[Check]:
        """Check what the files show."""
        config, weights, model = self._stored.config, self._weights, self.model
        checks = [*self._refused]
        if not any(check.name == "verifier" for check in checks):
            checks.append(check_verifier(config.verifier, model.card.name))
        kept = f"{config.draft_vocabulary:,} of {model.shape.vocabulary:,} tokens, each once and in range"
        kept = kept if self.drafted is not None else "all tokens can be drafted"
        taps = ", ".join(map(str, self._stored.taps))
        embedding = weights.get("embed_tokens.weight")
        return [
            *checks,
            Check("shapes", "shapes", fine=True, sentence=f"{len(weights)} weights have the sizes of config.json"),
            Check("vocabulary map", "vocabulary_map", fine=True, sentence=kept),
            Check("tapped layers", "taps", fine=True, sentence=f"{taps} of {model.shape.layers}"),
            check_norms({name: weight for name, weight in weights.items() if name not in self._unasked}),
            check_eps(config.shape.eps, model.shape.eps),
            check_embedding(embedding, self._embeddings[0]),
            check_rows(weights.get("lm_head.weight"), self._embeddings[1], self.drafted),
            check_spoilt(weights),
            check_rounding(weights),
            check_dtype(weights, model.dtype),
        ]

    @property
    def _unasked(self) -> set[str]:
        """Return the norms before fc that no flag asks for: `_explain` tells of them."""
        config, taps = self._stored.config, len(self._stored.taps)
        asked = fc_norms(config, taps) if config.norm_before_fc or config.fc_norm else {}
        return {name for name in self._weights if name.startswith(("input_norm.", "fc_norm."))} - asked.keys()

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
        held = {key: value for key, value in config.layer.items() if key not in ("rope_scaling", "rope_theta")}
        for *named, parameters in rotary_changes(self.rope(wiring), self._target_rope):
            shape = replace(config.shape, rope=parameters.get("rope_type", "default"))
            seen = replace(config, layer={**held, "rope_parameters": dict(parameters)}, shape=shape)
            probes.append(probe(wiring, *named, config=seen))
        other_window = None if config.window else self.model.window or _WINDOW
        seen, given = replace(config, shape=replace(config.shape, windows=(other_window,))), config.window or None
        name = f"window {other_window}" if other_window else "window off"
        remedy = f"set sliding_window to {other_window}" if other_window else "remove the sliding window"
        remedy = f"{remedy} in config.json"
        return [*probes, probe(wiring, name, "window", given, other_window, remedy, config=seen)]

    def _numbers(self, wiring: EagleWiring) -> list[Probe]:
        """Try another embedding, output layer, vocabulary map, epsilon and dtype."""
        probes, same_size = list[Probe](), wiring.config.shape.hidden == self.model.shape.hidden
        if "lm_head.weight" in self._weights and same_size:
            if self.drafted is not None and not wiring.by_rows:
                remedy = "let d2t and t2d name the tokens whose rows of the target's output layer lm_head.weight holds"
                name = "vocabulary map by the rows of lm_head.weight"
                probes.append(probe(wiring, name, "vocabulary_map", "own", "by rows", remedy, by_rows=True))
            other = "target" if wiring.output == "own" else "own"
            remedy = "leave lm_head.weight out of the file" if other == "target" else "use lm_head.weight"
            name = f"output layer: {other}"
            probes.append(probe(wiring, name, "output", wiring.output, other, remedy, output=other))
        shape, size = wiring.config.shape, self.model.shape.head_dim
        if size != shape.head_dim and not (shape.kv_heads * shape.head_dim) % size:
            heads, kv_heads = (count * shape.head_dim // size for count in (shape.heads, shape.kv_heads))
            split = replace(shape, heads=heads, kv_heads=kv_heads, head_dim=size, rotary=size)
            remedy = f"set num_attention_heads to {heads}, num_key_value_heads to {kv_heads} and head_dim to {size}"
            seen, name = replace(wiring.config, shape=split), f"heads of {size} dimensions, as the target's"
            probes.append(
                probe(wiring, name, "head_dim", shape.head_dim, size, f"{remedy} in config.json", config=seen)
            )
        if (eps := self.model.shape.eps) != shape.eps:
            name, remedy = f"epsilon {eps:g}", f"set rms_norm_eps to {eps:g} in config.json"
            seen = replace(wiring.config, shape=replace(shape, eps=eps))
            probes.append(probe(wiring, name, "rms_norm_eps", shape.eps, eps, remedy, config=seen))
        if "embed_tokens.weight" in self._weights and same_size:
            other = "target" if wiring.embedding == "own" else "own"
            remedy = "leave embed_tokens.weight out of the file" if other == "target" else "use embed_tokens.weight"
            name = f"embedding: {other}"
            probes.append(probe(wiring, name, "embedding", wiring.embedding, other, remedy, embedding=other))
        for by in (-1, 1) if self.drafted is not None else ():
            shift = wiring.map_shift + by
            name, remedy = f"vocabulary map {shift:+d}", f"add {by} to every entry of d2t, and move t2d with it"
            probes.append(probe(wiring, name, "vocabulary_map", wiring.map_shift, shift, remedy, map_shift=shift))
        return [*probes, probe_dtype(wiring, "drafter")]

    def guess(self, wiring: EagleWiring, text: Text, places: Sequence[int], depth: int) -> torch.Tensor:  # (P, depth)
        """Return the likeliest chain at every position."""
        return EagleGuesses(self, wiring, text, places).guess(depth)

    def rows(
        self, wiring: EagleWiring, text: Text, places: Sequence[int]
    ) -> tuple[torch.Tensor, list[int]]:  # (P, n), P
        """Return the logits of the first guess at every position, and the rows of the target that say the same."""
        logits = self._logits(wiring, EagleGuesses(self, wiring, text, places).first())
        if self.drafted is not None and (wiring.by_rows or wiring.map_shift):
            wide = logits.new_full((len(logits), self.model.shape.vocabulary), -torch.inf)
            logits = wide.index_copy_(1, self._ids(wiring), logits)[:, self.drafted]
        return logits, [*places]

    def edits(self, wiring: EagleWiring) -> Sequence[Probe]:
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

    def shares(self, wiring: EagleWiring) -> Sequence[Probe]:
        """Take a share of what each part of the drafter adds."""
        hidden, target = wiring.config.shape.hidden, wiring.config.target_hidden
        edits = [
            *shares_of("the attention's output", [f"{_AT}self_attn.o_proj.weight"], vital=True),
            *shares_of("the feed-forward part's output", [f"{_AT}mlp.down_proj.weight"], vital=True),
            *shares_of("the token's embedding", _INPUTS, slice(0, hidden)),
            *shares_of("the feature's part of q, k and v", _INPUTS, slice(hidden, 2 * hidden)),
        ]
        for at, tap in enumerate(wiring.taps):
            edits += shares_of(f"the states of layer {tap}", ["fc.weight"], slice(at * target, (at + 1) * target))
        return edit_probes(wiring, edits)

    def block(self, wiring: EagleWiring) -> Block:
        """Make the arithmetic of a wiring, which is kept for the next text."""
        if self._block is None or self._block[0] is not wiring:
            weights = self._held(wiring)
            made = Block(wiring.config, weights, lambda weight, bias: lambda x: linear(x, weight, bias))
            self._block = wiring, made
        return self._block[1]

    def rope(self, wiring: EagleWiring) -> Rope:
        """Make the rotary embedding of a wiring."""
        key = json.dumps(wiring.config.layer, sort_keys=True), wiring.config.shape.rotary, wiring.dtype
        if key not in self._ropes:
            self._ropes[key] = wiring.config.rope(self.model.device, wiring.dtype)
        return self._ropes[key]

    def _held(self, wiring: EagleWiring) -> Mapping[str, torch.Tensor]:
        """Return all weights on the model's device; norm scales that the flags ask for and no file has are 1."""
        dtype, config = wiring.dtype, wiring.config
        if dtype not in self._cast:
            self._cast[dtype] = {name: weight.to(self.model.device, dtype) for name, weight in self._weights.items()}
        held = edited(self._cast[dtype], wiring.edits)
        one = next(iter(held.values()))
        asked = fc_norms(config, len(self._stored.taps)) if config.norm_before_fc or config.fc_norm else {}
        return {**{name: one.new_ones(size) for name, size in asked.items()}, **held}

    def embed(self, wiring: EagleWiring, ids: torch.Tensor) -> torch.Tensor:  # (n,) -> (n, H)
        """Embed tokens."""
        table = self._weights["embed_tokens.weight"] if wiring.embedding == "own" else self._embeddings[0]
        return table.to(ids.device)[ids].to(wiring.dtype)

    def say(self, wiring: EagleWiring, rows: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R,) ids
        """Return the likeliest token after every row."""
        best = self._logits(wiring, rows).argmax(-1)
        if self.drafted is None:
            return best
        return self._ids(wiring)[best]

    def _logits(self, wiring: EagleWiring, rows: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R, n)
        output = self._cast[wiring.dtype].get("lm_head.weight")
        if output is None or wiring.output == "target":
            output = self._embeddings[1] if self.drafted is None else self._embeddings[1][self.drafted]
        return linear(rows, output.to(rows.dtype))

    def _ids(self, wiring: EagleWiring) -> torch.Tensor:  # (n,)
        """Return the token of every row of the output layer."""
        assert self.drafted is not None
        if wiring.by_rows and self._by_rows is None:
            self._by_rows = match_rows(self._weights["lm_head.weight"], self._embeddings[1])[0].to(self.model.device)
        ids = self._by_rows if wiring.by_rows and self._by_rows is not None else self.drafted
        return (ids + wiring.map_shift).clamp(0, self.model.shape.vocabulary - 1)

    @property
    def _target_rope(self) -> Rope:
        return (self.model.sections[0] if isinstance(self.model, SplitDecoder) else self.model).rope

    def _has(self, layer: int) -> bool:
        return 0 <= layer <= self.model.shape.layers
