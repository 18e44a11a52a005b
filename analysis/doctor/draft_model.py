"""Examines a draft model: whether it reads the target's tokens as in its training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from decoding.codec import Codec
from decoding.model.decoder import Decoder
from decoding.model.precision import spelt
from decoding.model.session import catch_up
from decoding.parts.draft_vocabulary import drafted_by
from decoding.parts.makers import head_of

from .edits import Edit, HeadSizes, Weights, edited, exchanged_layers, layer_edits, norm_scales, shares_of
from .probes import Check, Probe, chains, edit_probes, probe
from .rest import check_eps, check_norms, check_numbers, refuse_infinite
from .rotary import rotary_changes

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text

_CHUNK = 256  # rows of a prompt that are read at once
_DEPTH = 5
_WINDOW = 64  # tried where neither of the two has a window
_FEW_LAYERS = 8  # that are changed one by one
_CHAT = [{"role": "user", "content": "Good morning"}]


@dataclass(frozen=True, slots=True)
class DraftWiring:
    """The settings that a draft model's files, or the program that runs it, may get wrong."""

    rope: Mapping[str, Any]  # the settings of its rotary embedding
    windows: tuple[int | None, ...]
    offset: int = 0  # added to every id that it reads, and subtracted from every id that it drafts
    marks: str = "the target's"  # in front of a prompt; or "none", or "the drafter's"
    template: str = "the target's"  # or "the drafter's"
    eps: float = 1e-6  # of its norms
    edits: tuple[Edit, ...] = ()  # of the weights of its layers


class ExaminedDraft:
    """A draft model beside its target."""

    method, apart = "draft_model", ""
    folder: Path | None = None  # a model of its own has no files that promise how it is wired
    young = False  # a model of its own learns in all of its parts at once

    def __init__(
        self,
        draft: AnyDecoder,
        codec: Codec,
        target: AnyDecoder,
        target_codec: Codec,
        read: Callable[[], Weights],  # its weights by transformers' names
        names: Sequence[Check] = (),  # the check of its configuration's names
    ) -> None:
        self._draft, self._codec, self.model, self._target_codec = draft, codec, target, target_codec
        self._names, self._weights = names, read() if isinstance(draft, Decoder) else {}
        tables = zip(("embedding", "output layer"), draft.embeddings(), strict=True)
        refuse_infinite({**dict(tables), **self._weights})
        self.about, self.depth = f"{draft.card.name} {draft.card.hash[:12]}", _DEPTH
        rope = draft.rope.parameters if isinstance(draft, Decoder) else {}
        self.given = DraftWiring(rope, draft.shape.windows, eps=draft.shape.eps)
        vocabulary, both = drafted_by(draft), min(draft.card.vocabulary, target.card.vocabulary)
        self.drafted: torch.Tensor | None
        self.drafted = torch.arange(both, device=target.device) if vocabulary is None else vocabulary.ids
        self._rewired: tuple[DraftWiring, AnyDecoder] | None = None  # the last one: the next texts are read with it

    def checks(self) -> Sequence[Check]:
        """Check what the files show."""
        ours, theirs = self.model.card, self._draft.card
        sentence = f"{theirs.vocabulary:,} rows for the target's {ours.vocabulary:,}"
        return [
            *self._names,
            self._check_tokenizer(),
            self._check_marks(),
            self._check_template(),
            Check("vocabulary", "vocab_size", fine=True, sentence=sentence),
            *self._check_weights(),
            Check("dtype", "dtype", fine=True, sentence=f"computed in {spelt(self._draft.dtype)}"),
        ]

    def _check_weights(self) -> list[Check]:
        eps = check_eps(self._draft.shape.eps, self.model.shape.eps)
        layers = {name: weight for name, weight in self._weights.items() if ".layers." in name or "norm" in name}
        return [eps, check_norms(layers), *check_numbers(layers)] if layers else [eps]

    def _check_tokenizer(self) -> Check:
        name = flag = "tokenizer"
        if self._codec.tokenizer is None or self._target_codec.tokenizer is None:
            return Check(name, flag, fine=True, sentence="one of the two has no tokenizer to compare")
        want, have = (codec.tokenizer.get_vocab() for codec in (self._target_codec, self._codec))
        differing = sorted(want.items() ^ have.items(), key=lambda entry: (entry[1], entry[0]))
        if not differing:
            return Check(name, flag, fine=True, sentence=f"all {len(want):,} tokens have equal ids")
        token, index = differing[0]
        given, better = (_token(codec, index) for codec in (self._codec, self._target_codec))
        count = len({index for _, index in differing})
        sentence = (
            f"{count:,} ids are other tokens than in the target, first {index}: {given} instead of {better}; "
            "use the target's tokenizer files, if the drafter was trained with them"
        )
        return Check(name, flag, fine=False, sentence=sentence, given=given, better=better)

    def _check_marks(self) -> Check:
        drafter, target = self._marks(self._codec), self._marks(self._target_codec)
        if self._codec.tokenizer is None or drafter == target:
            return Check("marks", "bos", fine=True, sentence=f"both begin texts with {_listed(target)}")
        sentence = f"the drafter begins texts with {_listed(drafter)}, the target with {_listed(target)}"
        return Check("marks", "bos", fine=False, sentence=sentence, given=drafter, better=target)

    def _check_template(self) -> Check:
        name, flag = "template", "chat_template"
        if not (self._codec.has_chat_template and self._target_codec.has_chat_template):
            return Check(name, flag, fine=True, sentence="one of the two has no chat template to compare")
        drafter, target = (codec.encode_chat(_CHAT) for codec in (self._codec, self._target_codec))
        if drafter == target:
            return Check(name, flag, fine=True, sentence="both encode a chat in the same tokens")
        at = next((i for i, pair in enumerate(zip(drafter, target, strict=False)) if pair[0] != pair[1]), -1)
        sentence = (
            f"the two templates encode a chat differently, first at token {at}: "
            "use the target's chat_template, if the drafter was trained with it"
        )
        return Check(name, flag, fine=False, sentence=sentence, given="the drafter's", better="the target's")

    def layers(self) -> Sequence[int]:
        """Return no layers: a draft model reads only tokens."""
        return ()

    def probes(self, wiring: DraftWiring) -> Sequence[Probe]:
        """Try other ids, other prompts, and another rotary embedding or window."""
        probes = list[Probe]()
        for by in (-1, 1):
            offset = wiring.offset + by
            remedy = f"give the drafter every id {offset:+d}, or move the rows of its embedding"
            probes.append(probe(wiring, f"ids {offset:+d}", "id_offset", wiring.offset, offset, remedy, offset=offset))
        for marks in ("the target's", "none", "the drafter's", "repeated"):
            if marks != wiring.marks and self._differs(marks):
                name, remedy = f"first marks: {marks}", f"let the drafter's prompts begin with {marks}"
                probes.append(probe(wiring, name, "bos", wiring.marks, marks, remedy, marks=marks))
        if not self._check_template().fine:
            other = "the drafter's" if wiring.template == "the target's" else "the target's"
            name, remedy = f"template: {other}", f"let the drafter read prompts in {other} template"
            probes.append(probe(wiring, name, "chat_template", wiring.template, other, remedy, template=other))
        return [*probes, *self._tables(wiring, self._draft)] if isinstance(self._draft, Decoder) else probes

    def _tables(self, wiring: DraftWiring, draft: Decoder) -> list[Probe]:
        probes, target = list[Probe](), self.model.rope if isinstance(self.model, Decoder) else None
        for *named, parameters in rotary_changes(draft.rope.with_parameters(wiring.rope), target):
            probes.append(probe(wiring, *named, rope=parameters))
        if self._weights and (eps := self.model.shape.eps) != wiring.eps:
            remedy = f"set rms_norm_eps to {eps:g} in its config.json"
            probes.append(probe(wiring, f"epsilon {eps:g}", "rms_norm_eps", wiring.eps, eps, remedy, eps=eps))
        given = min((window for window in wiring.windows if window), default=None)
        window = None if given else self.model.window or _WINDOW
        name, remedy = f"window {window or 'off'}", f"set sliding_window to {window or 'null'} in its config.json"
        windows = (window,) * len(wiring.windows)
        return [*probes, probe(wiring, name, "window", given, window, remedy, windows=windows)]

    @torch.inference_mode()
    def guess(self, wiring: DraftWiring, text: Text, places: Sequence[int], depth: int) -> torch.Tensor:  # (P, depth)
        """Return the likeliest chain at every position."""
        logits = self._read(wiring, text, range(places[0], places[-1] + depth))
        best = logits[..., : self.model.card.vocabulary + max(0, wiring.offset)].argmax(-1) - wiring.offset
        return chains(best, [place - places[0] for place in places], depth)

    def rows(self, wiring: DraftWiring, text: Text, places: Sequence[int]) -> tuple[torch.Tensor, list[int]]:
        """Return the logits of the first guess at every position, and the target's rows for the same tokens."""
        assert self.drafted is not None
        logits = self._read(wiring, text, range(places[0], places[-1] + 1))[[place - places[0] for place in places]]
        return logits[:, (self.drafted + wiring.offset).clamp(0, logits.shape[1] - 1)], [*places]

    def edits(self, wiring: DraftWiring) -> Sequence[Probe]:
        """Put weights into other orders, change signs, and divide norms."""
        weights, shape = self._weights, self._draft.shape
        if not weights:
            return []
        layers = self._layers
        edits = layer_edits(weights, layers, HeadSizes(shape.heads, shape.kv_heads, shape.head_dim))
        norms = [f"{at}{name}.weight" for at in layers for name in ("input_layernorm", "post_attention_layernorm")]
        edits += norm_scales(weights, [name for name in norms if name in weights])
        for one, other in zip(layers, layers[1:], strict=False):
            edits.append(exchanged_layers(weights, one, other))
        return edit_probes(wiring, edits)

    def shares(self, wiring: DraftWiring) -> Sequence[Probe]:
        """Scale down what each part of the draft model adds: in all layers, and in single ones where they are few."""
        if not self._weights:
            return []
        parts = {"attention": "self_attn.o_proj", "feed-forward parts": "mlp.down_proj"}
        edits = list[Edit]()
        for what, name in parts.items():
            every = [f"model.layers.{layer}.{name}.weight" for layer in range(self._draft.shape.layers)]
            edits += shares_of(f"the {what} of all layers", every, vital=True)
            for at in self._layers if len(every) > 1 else ():
                edits += shares_of(f"the {what} of {at.removeprefix('model.').rstrip('.')}", [f"{at}{name}.weight"])
        return edit_probes(wiring, edits)

    @property
    def _layers(self) -> list[str]:
        """Return the prefixes of the layers' weight names, where the layers are few enough to be tried singly."""
        count = self._draft.shape.layers
        return [f"model.layers.{layer}." for layer in range(count if count <= _FEW_LAYERS else 0)]

    @torch.inference_mode()
    def _read(self, wiring: DraftWiring, text: Text, rows: range) -> torch.Tensor:  # (len(rows), V)
        """Return the logits after these rows of the text, in the draft model's own ids."""
        prompt, vocabulary = self._prompt(wiring, text), self._draft.card.vocabulary
        ids, moved = [*prompt, *text.ids[text.prompt_length :]], len(prompt) - text.prompt_length
        fed = [min(max(each + wiring.offset, 0), vocabulary - 1) for each in ids]
        first = rows.start + moved  # rows in front of it answer for nothing
        asked, model = fed[first : rows.stop + moved], self._model(wiring)
        session = model.open(len(fed), max(len(asked), _CHUNK))
        session.reset(len(prompt))
        catch_up(session, fed[:first], 0, _CHUNK)
        logits = session.read(asked, tuple(range(-1, len(asked) - 1))).logits
        return logits if (drafted := drafted_by(model)) is None else drafted.widen(logits)

    def _model(self, wiring: DraftWiring) -> AnyDecoder:
        draft, given = self._draft, self.given
        weights_changed, tables = wiring.edits or wiring.eps != given.eps, (wiring.rope, wiring.windows)
        tables_changed = tables != (given.rope, given.windows)
        if not isinstance(draft, Decoder) or not (weights_changed or tables_changed):
            return draft
        if self._rewired is None or self._rewired[0] != wiring:
            model = draft
            if weights_changed:
                held = edited(self._weights, wiring.edits)
                with torch.inference_mode():
                    model = draft.relayered(lambda name: held[name].to(draft.device, draft.dtype), wiring.eps)
            if tables_changed:
                model = model.rewired(wiring.windows, wiring.rope)
            self._rewired = wiring, model
        return self._rewired[1]

    def _prompt(self, wiring: DraftWiring, text: Text) -> list[int]:
        """Return the prompt that the drafter reads instead of the target's."""
        ids = [*text.ids[: text.prompt_length]]
        if wiring.template == "the drafter's" and not isinstance(text.prompt, str):
            ids = self._codec.encode_chat(text.prompt)  # type: ignore[arg-type]  # a chat, or ids that have no template
        drafter, target = self._marks(self._codec), self._marks(self._target_codec)
        bare = ids[len(target) :] if target and ids[: len(target)] == target else ids
        marks = {"the target's": None, "none": [], "the drafter's": drafter, "repeated": [*target, *target]}[
            wiring.marks
        ]
        return ids if marks is None else [*marks, *bare]

    def _differs(self, marks: str) -> bool:
        drafter, target = self._marks(self._codec), self._marks(self._target_codec)
        if marks in ("none", "repeated"):
            return bool(target)
        return marks == "the target's" or (self._codec.tokenizer is not None and drafter != target)

    def _marks(self, codec: Codec) -> list[int]:
        return head_of(codec, self.model.card.vocabulary)


def _token(codec: Codec, index: int) -> str:
    return str(codec.tokenizer.convert_ids_to_tokens(index))[:40]


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids)) or "no mark"
