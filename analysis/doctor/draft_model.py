"""A draft model under examination: whether it reads the same tokens as the target, and as it was trained to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from decoding.codec import Codec
from decoding.model.decoder import Decoder
from decoding.model.session import catch_up
from decoding.parts.draft_vocabulary import drafted_by
from decoding.parts.makers import head_of

from .probes import Check, Probe, chains, probe, word

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text

_CHUNK = 256  # rows of a prompt that are read at once
_DEPTH = 5
_WINDOW = 64  # tried where neither of the two has a window
_BASE = 1e4  # of a rotary embedding where none is given
_CHAT = [{"role": "user", "content": "Good morning"}]


@dataclass(frozen=True, slots=True)
class DraftWiring:
    """All that a draft model's files, or the program that runs it, may have wrong."""

    base: float
    windows: tuple[int | None, ...]
    offset: int = 0  # added to every id that it reads, and subtracted from every id that it drafts
    marks: str = "the target's"  # in front of a prompt; or "none", or "the drafter's"
    template: str = "the target's"  # or "the drafter's"


class ExaminedDraft:
    """A draft model beside its target."""

    method = "draft_model"

    def __init__(self, draft: AnyDecoder, codec: Codec, target: AnyDecoder, target_codec: Codec) -> None:
        self._draft, self._codec, self._target, self._target_codec = draft, codec, target, target_codec
        self._rewired: dict[tuple[float, tuple[int | None, ...]], AnyDecoder] = {}
        self.about, self.depth = f"{draft.card.name} {draft.card.hash[:12]}", _DEPTH
        base = draft.rope.base if isinstance(draft, Decoder) else _BASE
        self.given = DraftWiring(base, draft.shape.windows)

    def checks(self) -> Sequence[Check]:
        """Check what the files show."""
        ours, theirs = self._target.card, self._draft.card
        sentence = f"{theirs.vocabulary:,} rows for the target's {ours.vocabulary:,}"
        return [
            self._check_tokenizer(),
            self._check_marks(),
            self._check_template(),
            Check("vocabulary", "vocab_size", fine=True, sentence=sentence),
            Check("dtype", "dtype", fine=True, sentence=f"computed in {word(self._draft.dtype)}"),
        ]

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
        return [*probes, *self._tables(wiring)] if isinstance(self._draft, Decoder) else probes

    def _tables(self, wiring: DraftWiring) -> list[Probe]:
        probes = list[Probe]()
        target = self._target.rope.base if isinstance(self._target, Decoder) else _BASE
        for base in sorted({target, _BASE} - {wiring.base}):
            remedy = f"set rope_theta to {base:g} in its config.json"
            probes.append(probe(wiring, f"rotary base {base:g}", "rope_theta", wiring.base, base, remedy, base=base))
        given = min((window for window in wiring.windows if window), default=None)
        window = None if given else self._target.window or _WINDOW
        name, remedy = f"window {window or 'off'}", f"set sliding_window to {window or 'null'} in its config.json"
        windows = (window,) * len(wiring.windows)
        return [*probes, probe(wiring, name, "window", given, window, remedy, windows=windows)]

    @torch.inference_mode()
    def guess(self, wiring: DraftWiring, text: Text, places: Sequence[int], depth: int) -> torch.Tensor:  # (P, depth)
        """Return the likeliest chain at every position."""
        prompt, drafted_ids, wanted = (
            self._prompt(wiring, text),
            self._draft.card.vocabulary,
            self._target.card.vocabulary,
        )
        ids, moved = [*prompt, *text.ids[text.prompt_length :]], len(prompt) - text.prompt_length
        fed = [min(max(each + wiring.offset, 0), drafted_ids - 1) for each in ids]
        first = places[0] + moved  # rows in front of it answer for nothing
        rows = fed[first : places[-1] + moved + depth]
        model = self._model(wiring)
        session = model.open(len(fed), max(len(rows), _CHUNK))
        session.reset(len(prompt))
        catch_up(session, fed[:first], 0, _CHUNK)
        logits = session.read(rows, tuple(range(-1, len(rows) - 1))).logits
        if (drafted := drafted_by(model)) is not None:
            logits = drafted.widen(logits)
        best = logits[..., : wanted + max(0, wiring.offset)].argmax(-1) - wiring.offset
        return chains(best, [place - places[0] for place in places], depth)

    def _model(self, wiring: DraftWiring) -> AnyDecoder:
        draft, key = self._draft, (wiring.base, wiring.windows)
        if not isinstance(draft, Decoder) or (wiring.base, wiring.windows) == (self.given.base, self.given.windows):
            return draft
        if key not in self._rewired:
            self._rewired[key] = draft.rewired(wiring.windows, wiring.base)
        return self._rewired[key]

    def _prompt(self, wiring: DraftWiring, text: Text) -> list[int]:
        """Return what the drafter reads instead of the target's prompt."""
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
        return head_of(codec, self._target.card.vocabulary)


def _token(codec: Codec, index: int) -> str:
    return str(codec.tokenizer.convert_ids_to_tokens(index))[:40]


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids)) or "no mark"
