"""SuffixDecoding (Oliaro et al., 2024, arXiv 2411.04975).

Guess what most often followed the text's ending: earlier in this text, or in earlier answers to the same user.

Algorithm
  L1  a local suffix tree holds the text, prompt and output; a global one holds earlier answers; both grow by the token
  L2  in each tree, for every ending of p tokens that occurs elsewhere in it:
  L3    grow a tree of guesses, always by the one with the largest D, as long as that is at least epsilon, to at most
        alpha p guesses; D is the product of the shares along its path: how often of all times that token came next
  L4    its score is the sum of D over its guesses, the expected number of accepted tokens
  L5  the draft is the tree with the largest score; of equals the local one, then the one of the longest ending

  symbol   meaning
  p        tokens of an ending
  alpha    guesses per token of it
  epsilon  least D of a guess
  depth    of the suffix trees: tokens of an ending and of the guesses after it, together

Differs from the paper
  The trees are automata with the same counts. Of tokens that came equally often, the latest is the first. The paper's
  global tree grows while an answer is written, ours once the next one begins. In its reference code the text's own end
  counts as a continuation, ties break by how the counts grew, and the default draft is a chain: there are settings for
  these, with which chains are those of arctic-inference 0.1.1, and trees have its scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import ClassVar, Literal

from ..drafting.earlier_answers import EarlierAnswers, NextAnswer, occurrences
from ..drafting.suffix_automaton import Ending, GrowingText, SuffixAutomaton
from ..params import Params, param, share
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import SuffixPanel, SuffixSide

LOCAL: Literal["local"] = "local"
GLOBAL: Literal["global"] = "global"


@dataclass(frozen=True, slots=True)
class SuffixParams(Params):
    """The suffix trees, and bounds of the guesses from them."""

    alpha: float = param(
        1.0, label="Guesses per token", symbol="α", help="Guesses per token of the matching suffix", min=0.1, max=64.0
    )
    c: int = param(64, label="Most guesses", help="Most guesses per step", min=1, max=255)
    epsilon: float = share(
        0.1, label="Least share", symbol="ε", help="Drop a guess whose path was followed less often than this"
    )
    depth: int = param(64, label="Depth", help="Longest suffix and guesses together, in tokens", min=2, max=256)
    shape: str = param("tree", label="Form", help="Draft a tree, or its best chain", choices=("tree", "chain"))
    look_in: str = param(
        "both", label="Look in", help="This text, earlier answers, or the better match", choices=("both", LOCAL, GLOBAL)
    )
    answers: int = param(100, label="Earlier answers", help="Most earlier answers to remember", min=1, max=1000)
    count_end: bool = param(
        False,
        label="Count the end",
        help="Count the end of the text as a continuation, and break ties, as the reference code does",
    )

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "As in the reference code": {"shape": "chain", "count_end": True},
        "As in vLLM": {"shape": "chain", "count_end": True, "depth": 24, "c": 24},
        "SmolLM2 on a CPU": {"alpha": 3.0, "c": 8},
        "pocket on a CPU": {"alpha": 3.0, "c": 8},
    }


@dataclass(frozen=True, slots=True)
class SuffixGuess:
    """A node of a tree of guesses."""

    token: int
    parent: int  # an earlier guess; -1: the root
    count: int  # how often it came next
    share: float  # D


@dataclass(frozen=True, slots=True)
class Match:
    """An ending, and the guesses after it."""

    p: int = 0  # tokens of the ending
    count: int = 0  # its earlier occurrences
    guesses: Sequence[SuffixGuess] = ()
    score: float = 0.0

    def summary(self) -> SuffixSide:
        """Return the match in numbers."""
        return {"p": self.p, "count": self.count, "score": round(self.score, 4), "guesses": len(self.guesses)}


class Suffix(Method):
    """Guess what most often followed earlier occurrences of the same ending."""

    name = "suffix"
    label = "SuffixDecoding"
    paper = "Oliaro et al. 2024, arXiv 2411.04975"
    Params = SuffixParams
    Panel = SuffixPanel

    def __init__(self, context: Context, params: SuffixParams) -> None:
        self._context, self._params = context, params
        sorts = params.count_end
        self._local = SuffixAutomaton(params.depth, sorts=sorts)
        self._text = GrowingText(self._local)
        name, depth = f"answers depth={params.depth} most={params.answers} sorts={sorts}", params.depth
        self._earlier: EarlierAnswers | None = None
        if params.look_in != LOCAL:
            self._earlier = context.remember(name, lambda: EarlierAnswers(depth, params.answers, sorts=sorts))
        self._answer: NextAnswer | None = None  # from the first step on
        self._length = 0  # of the text at the last proposal
        self._matches: dict[Literal["local", "global"], Match] = {}
        self._chosen: Literal["local", "global"] = LOCAL

    def propose(self) -> Draft:
        """Propose the root and the better of two trees of guesses."""
        text = self._context.text
        self._text.update(text)  # L1
        self._matches, self._length = {}, len(text)
        if self._params.look_in != GLOBAL:
            self._matches[LOCAL] = self._best(self._local, self._text.ending, here=1)
        if self._earlier is not None:
            self._answer = self._answer or NextAnswer(self._earlier, text)
            self._answer.follow(text)
            with self._earlier.reading():
                self._matches[GLOBAL] = self._best(self._answer.automaton, self._answer.ending, here=0)
        self._chosen = max(self._matches, key=lambda name: self._matches[name].score)  # L5
        tree, nodes = Builder(text[-1]), [0]
        for guess in self._matches[self._chosen].guesses:
            nodes.append(tree.add(guess.token, nodes[guess.parent + 1], f"{self._chosen}:{guess.count}"))
        return tree.draft()

    def _best(self, automaton: SuffixAutomaton, ending: Ending, here: int) -> Match:
        """Find the best match in one tree; `here` is 1 if it contains the text's end itself."""
        best = Match()
        for lengths, state in automaton.endings(ending):
            for p in lengths:  # L2
                most = min(int(self._params.alpha * p + 1e-6), self._params.c, self._context.largest_step - 1)
                depth = min(self._params.depth - p, self._context.room)
                if most <= best.score:
                    break  # no guesses after this ending or a shorter one could be better
                if depth > 0:
                    guesses = self._grow(automaton, state, most, depth)
                    score = round(sum(guess.share for guess in guesses), 9)  # L4; equal sums may differ by rounding
                    if score > best.score:
                        best = Match(p, automaton.count(state) - here, guesses, score)
                if most <= depth:
                    break  # a shorter ending of the same state has the same guesses, or fewer
        return best

    def _grow(self, automaton: SuffixAutomaton, state: int, most: int, depth: int) -> list[SuffixGuess]:
        """Expand a state into at most `most` guesses, `depth` tokens deep."""
        guesses, offered = list[SuffixGuess](), 0
        heap = [(-1.0, 0, SuffixGuess(-1, -1, 0, 1.0), state, 0)]  # the largest D first; of equals the first offered
        while heap and len(guesses) <= most:  # L3
            _, _, guess, state, level = heappop(heap)
            guesses.append(guess)
            if level == depth or guess.token in self._context.end_tokens:
                continue
            children = automaton.children(state)
            total = automaton.count(state) if self._params.count_end else sum(child.count for child in children)
            for child in children[: 1 if self._params.shape == "chain" else None]:
                D = guess.share * child.count / total
                if self._params.epsilon > D + 1e-9:  # a product that is epsilon may be rounded below it
                    break
                offered += 1
                below = SuffixGuess(child.token, len(guesses) - 2, child.count, D)
                heappush(heap, (-D, offered, below, child.state, level + 1))
        return guesses[1:]

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Append the emitted tokens to this run's answer."""
        if self._answer is not None:
            self._answer.tokens.extend(verdict.emitted)

    def panel(self) -> SuffixPanel:
        """Return the matches in both trees, and the latest occurrences of the ending in the chosen one."""
        panel: SuffixPanel = {"answers": 0 if self._answer is None else self._answer.before}
        if LOCAL in self._matches:
            panel["local"] = self._matches[LOCAL].summary()
        if GLOBAL in self._matches:
            panel["earlier"] = self._matches[GLOBAL].summary()
        best, text = self._matches[self._chosen], self._context.text[: self._length]
        if best.guesses:
            ending = text[len(text) - best.p :]
            other = self._answer if self._chosen == GLOBAL else None
            places: JSON = occurrences({0: text} if other is None else other.others(), ending)
            panel |= {"chosen": self._chosen, "ending": ending, "places": places}
        return panel
