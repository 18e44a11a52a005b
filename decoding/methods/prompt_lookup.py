"""Prompt lookup decoding (Saxena, 2023) and LLMA's copying from a reference (Yang et al., arXiv 2304.04487).

When the text's last few tokens occurred before, guess that the same tokens follow again.

Algorithm
  L1  for n from the longest suffix to the shortest:
  L2      find where the last n tokens of the text occurred before, in the text, else in the reference document
  L3      the next K tokens there are the draft: a chain below the root
  L4  no occurrence: the root alone, an ordinary autoregressive step

  symbol  meaning
  n       length of the suffix that must match
  K       tokens copied

Differs from the paper
  The latest of several occurrences is copied, which suits chat, and a copy that reaches the text's end continues from
  its own beginning, as in Lempel-Ziv 77, so a short loop is drafted in full. The presets give the original rules, with
  one exception: the reference code also skips a match whose copy would begin inside the suffix itself. With tail "full"
  that can only happen where K is at most n, so never with its own settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..drafting.suffix_index import SuffixIndex
from ..errors import ParamError
from ..params import Params, param
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import PromptLookupPanel


@dataclass(frozen=True, slots=True)
class PromptLookupParams(Params):
    """How suffixes are matched and copied."""

    max_ngram: int = param(3, label="Longest suffix", symbol="n", help="Longest suffix to match", min=1, max=16)
    min_ngram: int = param(1, label="Shortest suffix", help="Shortest suffix to match", min=1, max=16)
    K: int = param(10, label="Draft length", symbol="K", help="Tokens to copy", min=1, max=128)
    tie: str = param(
        "latest", label="Match", help="Copy from the latest match, or the earliest", choices=("latest", "earliest")
    )
    tail: str = param(
        "repeat", label="Short copies", help="Continue, keep or drop a short copy", choices=("repeat", "short", "full")
    )
    stop_at_end: bool = param(False, label="Stop at ends", help="Copy nothing from an end-of-text token on")

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "As in the reference code": {"max_ngram": 3, "min_ngram": 1, "K": 10, "tie": "earliest", "tail": "full"},
        "As in transformers": {
            "max_ngram": 2,
            "min_ngram": 1,
            "K": 10,
            "tie": "earliest",
            "tail": "short",
            "stop_at_end": True,
        },
        "SmolLM2 on a CPU": {"K": 5, "max_ngram": 5},
        "pocket on a CPU": {"K": 3},
    }

    def check(self) -> None:
        """Refuse an empty range of suffixes."""
        if self.min_ngram > self.max_ngram:
            raise ParamError(f"min_ngram must be at most max_ngram ({self.max_ngram}), not {self.min_ngram}")


class PromptLookup(Method):
    """Copy the tokens after an earlier occurrence of the same suffix."""

    name = "prompt_lookup"
    label = "Prompt lookup"
    paper = "Saxena 2023, github.com/apoorvumang/prompt-lookup-decoding; LLMA, arXiv 2304.04487"
    Params = PromptLookupParams
    Panel = PromptLookupPanel
    takes_reference = True

    def __init__(self, context: Context, params: PromptLookupParams) -> None:
        self._context, self._params = context, params
        self._in_text = SuffixIndex(params.min_ngram, params.max_ngram)
        self._in_reference = SuffixIndex(params.min_ngram, params.max_ngram)
        self._in_reference.update(context.reference)
        self._matched: PromptLookupPanel = {}

    def propose(self) -> Draft:
        """Propose the root and a copied chain."""
        context, text = self._context, self._context.text
        self._in_text.update(text)
        tree = Builder(text[-1])
        self._matched = {}
        count = min(self._params.K, context.room)
        for n in range(min(self._params.max_ngram, len(text)), self._params.min_ngram - 1, -1):  # L1
            tokens, sources = self._copy(tuple(text[-n:]), count)  # L2
            if tokens:
                ends = context.end_tokens if self._params.stop_at_end else ()
                kept = next((i for i, token in enumerate(tokens) if token in ends), len(tokens))
                tree.chain(tokens[:kept], sources[:kept])  # L3
                self._matched = {"n": n, "ending": text[-n:], "copied_from": sources[0]}
                break
        return tree.draft()  # L4

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Learn nothing: the text is the memory."""

    def panel(self) -> PromptLookupPanel:
        """Return the suffix that matched, and where."""
        return self._matched

    def _copy(self, ending: tuple[int, ...], count: int) -> tuple[list[int], list[str]]:
        """Copy up to `count` tokens that followed `ending`, each with its source."""
        params, context = self._params, self._context
        latest, room = params.tie == "latest", params.K if params.tail == "full" else 1
        place = self._in_text.find(ending, latest=latest, room=room)
        if place is not None:
            text = context.text
            end = place + count if params.tail == "repeat" else min(place + count, len(text))
            places = [place + (at - place) % (len(text) - place) for at in range(place, end)]
            names = [f"{'prompt' if at < context.prompt_length else 'output'}:{at}" for at in places]
            return [text[at] for at in places], names
        place = self._in_reference.find(ending, latest=latest, room=room)
        if place is None:
            return [], []
        places = list(range(place, min(place + count, len(context.reference))))
        return [context.reference[at] for at in places], [f"reference:{at}" for at in places]
