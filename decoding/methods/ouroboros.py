"""Ouroboros (Zhao et al., 2024, arXiv 2402.13720).

A small model drafts by phrases, more phrases lengthen its draft, and the target's answers to all of it become phrases.

Algorithm
  L1  start with an empty pool of phrases or, warm, with one that has seen text before
  L2  the drafter writes gamma tokens, several a pass: by Lookahead decoding, which guesses what the pool holds for
      the last token, and whose harvest goes into the same pool
  L3  lengthen: append the K newest phrases of the last draft token to it, as branches
  L4  the target reads the draft and its branches in one pass
  L5  forget in the drafter's cache what was rejected; its window stays as it is
  L6  inspire: where target and draft agree again after the first wrong token, the tokens they agree on and the
      target's next token are a phrase
  L7  refine: replace a branch's phrase with the target's choices along it, on rejection too

  symbol  meaning
  gamma   tokens drafted per step
  N       tokens of the longest phrase (the paper's beta) and of the drafter's n-grams
  W, G    columns of the drafter's window; phrases kept per token (the paper's W)
  K       phrases that lengthen a draft

Differs from the paper
  Inspired phrases may be shorter than N: a rejected part seldom holds a match of the N-1 tokens that the paper asks.
  Sampling is ours: every token drafted is an exact draw from the drafter's distribution, every branch a point mass.
  Refined phrases that became equal are kept once. A phrase is fed only as far as the draft or the text can go.
  Ours as well: drafting without window or phrases, and a warm start from the prompt.
  The reference code differs more than its sizes, which a preset gives. A phrase that matches whole, in the drafter's
  pass or after its draft, loses the bonus token. Inspired phrases are of N-1 tokens, may begin at the first wrong one,
  and need not agree with the target in the token they follow. A drafter that starts warm guesses phrases only once its
  window is full. After a rejection it refines for a few sizes only, by accident (K 3 with N 4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..drafting.chain import Chain
from ..drafting.ngram_pool import NEW, NgramPool
from ..drafting.window import Window, before_end, largest_pass
from ..params import Params, param
from ..tree import path_to
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import OuroborosPanel

_COUNTS = ("prompt", "window", "inspired", "refined", "draft_accepted", "suffix_accepted", "passes")
_DRAFT = "With Lookahead's window and phrases, with phrases only, or token by token"
_REFINE = "Always, after full acceptance (as the reference code), or never"
_WARM = "Start with no phrases, those of the prompt, or those of earlier runs"


@dataclass(frozen=True, slots=True)
class OuroborosParams(Params):
    """The draft, the phrases, and switches for the parts of the method."""

    gamma: int = param(8, label="Draft length", symbol="γ", help="Tokens drafted per step", min=1, max=64)
    N: int = param(5, label="Phrase length", symbol="β", help="Longest phrase, in tokens", min=3, max=16)
    W: int = param(8, label="Window size", symbol="W", help="Columns of the drafter's window", min=1, max=256)
    G: int = param(8, label="Phrases per token", symbol="G", help="Phrases to keep per token", min=0, max=256)
    K: int = param(3, label="Suffixes", symbol="K", help="Phrases to append to a draft (0: none)", min=0, max=64)
    drafting: str = param("lookahead", label="Drafting", help=_DRAFT, choices=("lookahead", "phrases", "plain"))
    inspire: bool = param(True, label="Inspire", help="Learn phrases from the rejected part of a draft")
    shortest: int = param(2, label="Shortest match", help="Shortest match to inspire (paper: N-1)", min=1, max=15)
    refine: str = param("always", label="Refine suffixes", help=_REFINE, choices=("always", "accepted", "never"))
    warm_start: str = param("off", label="Warm start", help=_WARM, choices=("off", "prompt", "across"))

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "reference sizes": {"gamma": 4, "N": 7, "W": 20, "G": 20, "shortest": 6, "refine": "accepted"},
        "HumanEval": {"gamma": 12, "N": 7, "W": 20, "G": 20, "shortest": 6},
        "SmolLM2 on a CPU": {"drafting": "plain", "gamma": 1, "K": 2, "N": 3, "W": 3, "G": 3, "warm_start": "prompt"},
        "pocket on a CPU": {"drafting": "plain", "gamma": 6, "K": 2, "N": 4, "W": 3, "G": 3, "warm_start": "prompt"},
    }

    @property
    def nodes(self) -> int:
        """Count the rows of the target's largest step or the drafter's largest pass: their sessions are of one size."""
        window = self.W if self.drafting == "lookahead" else 0
        return max(1 + self.gamma + self.K * (self.N - 1), largest_pass(window, self.N, self.G))


class Ouroboros(Method):
    """Draft and lengthen with phrases that the target inspires."""

    name = "ouroboros"
    label = "Ouroboros"
    paper = "Zhao et al. 2024, arXiv 2402.13720"
    Params = OuroborosParams
    Panel = OuroborosPanel
    needs = frozenset({"draft_model"})

    def __init__(self, context: Context, params: OuroborosParams) -> None:
        assert context.draft is not None
        self._context, self._params, self._drafter = context, params, context.draft
        self._counts = Counter[str]()
        across = params.warm_start == "across"
        name = f"pool N={params.N} G={params.G}"
        self._pool = context.remember(name, lambda: NgramPool(params.G)) if across else NgramPool(params.G)  # L1
        if params.warm_start == "prompt":
            self._counts["prompt"] = self._pool.insert_text(context.text, params.N)
        self._window = Window(params.W, params.N, context.from_prompt) if params.drafting == "lookahead" else None
        self._chain = Chain()
        self._branches: list[tuple[tuple[int, ...], int]] = []  # a phrase, and the node at its end
        self._panel: OuroborosPanel = {}

    def propose(self) -> Draft:
        """Propose the drafter's chain, and the branches after it."""
        context, params = self._context, self._params
        count = min(params.gamma, context.room)
        self._chain, passes = self._drafter.write(count, self._guesses, self._window, self._harvest)  # L2
        tokens = self._chain.tokens
        tree = self._chain.tree(context.text[-1], "draft")
        self._branches = []
        suffixes = self._suffixes(context.largest_step - len(tree))
        for entry, phrase in enumerate(suffixes):  # L3
            fed = before_end(phrase[: context.remaining - 1 - len(tokens)], context.end_tokens)
            sources = [f"pool:{entry},{i}" for i in range(len(fed))]
            end = tree.chain(fed, sources, len(tokens), merge=True)
            self._branches.append((phrase, end))
        self._panel = {"passes": passes, "suffixes": [[*phrase] for phrase in suffixes], "refined": [], "inspired": []}
        self._counts["passes"] += len(passes)
        return self._chain.draft(tree)  # L4

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Learn phrases from the target's choices."""
        accepted, gamma = len(verdict.path) - 1, len(self._chain)
        kept = min(accepted, gamma)
        self._drafter.forget()  # L5
        if self._params.inspire and kept < gamma:
            self._inspire(draft.tokens[: gamma + 1], kept + 2, verdict.argmax)  # L6
        if self._params.refine == "always" or (self._params.refine == "accepted" and kept == gamma):
            self._refine(draft, verdict.argmax)  # L7
        self._counts.update(draft_accepted=kept, suffix_accepted=accepted - kept)

    def panel(self) -> OuroborosPanel:
        """Return the tokens of each pass, the suffixes, refined and learned phrases, and counts over the run."""
        counts: JSON = {name: self._counts[name] for name in _COUNTS}
        return {**self._panel, "pool": {"keys": self._pool.keys, "entries": self._pool.entries}, "counts": counts}

    def _guesses(self, token: int) -> tuple[tuple[int, ...], ...]:
        """Return the phrases that the drafter guesses after a token."""
        return () if self._params.drafting == "plain" else self._pool.guesses(token)

    def _harvest(self, column: Sequence[int]) -> None:
        """Put an n-gram of the drafter's window into the pool."""
        outcome = self._pool.insert(column[0], tuple(column[1:]))
        self._counts["window"] += outcome in NEW

    def _suffixes(self, room: int) -> list[tuple[int, ...]]:
        """Return the newest phrases of the last draft token, newest first, as many as fit into `room` nodes."""
        params, tokens = self._params, self._chain.tokens
        if not tokens or tokens[-1] in self._context.end_tokens:
            return []
        fits = min(params.K, room // (params.N - 1))
        return [*reversed(self._pool.guesses(tokens[-1]))][:fits]

    def _inspire(self, drafted: tuple[int, ...], first: int, answers: tuple[int, ...]) -> None:
        """Learn a phrase from every position from `first` on where draft and target agree long enough."""
        longest = self._params.N - 1
        shortest = min(self._params.shortest, longest)
        for start in range(first, len(drafted)):
            end = start  # the target agrees with the draft from start up to end, end excluded
            while end < min(start + longest, len(drafted)) and drafted[end] == answers[end - 1]:
                end += 1
            if end - start >= shortest:
                key, phrase = drafted[start], answers[start:end]
                outcome = self._pool.insert(key, phrase)
                self._counts["inspired"] += outcome in NEW
                entry: JSON = [key, [*phrase], outcome]
                self._panel["inspired"].append(entry)

    def _refine(self, draft: Draft, answers: tuple[int, ...]) -> None:
        """Replace the branches' phrases with the target's choices."""
        gamma = len(self._chain)
        phrases, refined = [phrase for phrase, _ in self._branches], list[tuple[int, ...]]()
        for phrase, end in self._branches:
            branch = path_to(draft.parents, end)[gamma:]  # the last draft token, and the fed tokens of the phrase
            chosen = tuple(answers[node] for node in branch)[: len(phrase)]
            refined.append(chosen + phrase[len(chosen) :])  # tokens that were not fed stay
        self._pool.replace(draft.tokens[gamma], phrases, refined[::-1])
        self._counts["refined"] += sum(old != new for old, new in zip(phrases, refined, strict=True))
        self._panel["refined"] = [[*phrase] for phrase in refined]
