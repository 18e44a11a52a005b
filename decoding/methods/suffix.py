"""SuffixDecoding (Oliaro et al., 2024, arXiv 2411.04975).

Guess what most often followed the text's ending: earlier in this text, or in earlier answers to the same user.

Algorithm
  L1  a local suffix tree holds the text, prompt and output; a global one holds earlier answers; both grow by the token
  L2  in each tree, for every ending of p tokens that stands elsewhere in it:
  L3    grow a tree of guesses, always by the one with the largest D, as long as that is at least epsilon, to at most
        alpha p guesses; D is the product of the shares along its path: how often of all times that token came next
  L4    its score is the sum of D over its guesses, the tokens that it expects to be accepted
  L5  the draft is the tree with the largest score; of equals the local one, then the one of the longest ending

  symbol   meaning
  p        tokens of an ending
  alpha    guesses per token of it
  epsilon  D that a guess must have
  depth    of the suffix trees: tokens of an ending and of the guesses behind it, together

Differs from the paper
  The trees are automata with the same counts. Of tokens that came equally often, the latest is the first. The paper's
  global tree grows while an answer is written, ours once the next one begins. In its reference code the text's own end
  counts as a place where nothing came next, and its default draft is a chain: there are settings for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import ClassVar, Literal, TypedDict

from ..drafting.earlier_answers import Answer, remembered
from ..drafting.suffix_automaton import Entry, Place, SuffixAutomaton
from ..params import Params, param
from ..tree import Builder
from ..types import JSON, Draft, Token, Verdict
from .base import Context, Method

_PLACES, _FOLLOWS = 4, 8  # earlier places that the panel names, and tokens behind each
LOCAL: Literal["local"] = "local"
GLOBAL: Literal["global"] = "global"


@dataclass(frozen=True, slots=True)
class SuffixParams(Params):
    """What is looked at, and how much of it is guessed."""

    alpha: float = param(
        1.0, label="Guesses per token found", symbol="α", help="Tree size by the ending's length", min=0.1, max=64.0
    )
    c: int = param(64, label="Guesses", help="Nodes of the tree beside the root, at most", min=1, max=255)
    epsilon: float = param(
        0.1,
        label="Least share",
        symbol="ε",
        help="Of all times, how often a path of guesses came next",
        min=0.0,
        max=1.0,
    )
    depth: int = param(64, label="Depth", help="Of the suffix trees: ending and guesses together", min=2, max=256)
    shape: str = param("tree", label="Draft", help="A tree, or its best chain", choices=("tree", "chain"))
    look_in: str = param(
        "both",
        label="Look in",
        help="This text, earlier answers, or the better of both",
        choices=("both", LOCAL, GLOBAL),
    )
    answers: int = param(100, label="Earlier answers", help="Answers that are remembered", min=1, max=1000)
    count_end: bool = param(False, label="Count the end", help="The text's end is a place where nothing came next")

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "As in the reference code": {"shape": "chain", "count_end": True},
        "As in vLLM": {"shape": "chain", "count_end": True, "depth": 24, "c": 24},
        "SmolLM2 on a CPU": {"alpha": 3.0, "c": 8},
        "pocket on a CPU": {"alpha": 3.0, "c": 8},
    }


class SuffixSide(TypedDict):
    """The best of one suffix tree."""

    p: int  # tokens of the ending
    count: int  # how often it stands there, this time not counted
    score: float
    guesses: int


class SuffixPlace(TypedDict):
    """Where the ending stands as well."""

    answer: int  # 0: in this text; 1: in the latest earlier answer, 2: in the one before it, ...
    place: int  # behind it
    follows: list[Token]  # what stands there


class SuffixPanel(TypedDict, total=False):
    """What both suffix trees offered, and where the ending of the better one stands."""

    local: SuffixSide
    earlier: SuffixSide  # of the global tree
    chosen: Literal["local", "global"]  # nothing where neither offered anything
    ending: list[Token]
    places: list[SuffixPlace]  # the latest ones
    answers: int  # earlier ones that are remembered


@dataclass(frozen=True, slots=True)
class Guess:
    """A node of a speculated tree."""

    token: int
    parent: int  # its number among the guesses, -1 for the root
    count: int
    share: float  # D


@dataclass(frozen=True, slots=True)
class Match:
    """An ending, and what is guessed behind it."""

    p: int
    count: int
    guesses: list[Guess]
    score: float

    def summary(self) -> SuffixSide:
        """The match in numbers."""
        return {"p": self.p, "count": self.count, "score": round(self.score, 4), "guesses": len(self.guesses)}


class Suffix(Method):
    """Guess along two suffix trees, by how often everything came next."""

    name = "suffix"
    label = "SuffixDecoding"
    paper = "Oliaro et al. 2024, arXiv 2411.04975"
    Params = SuffixParams
    Panel = SuffixPanel

    def __init__(self, context: Context, params: SuffixParams) -> None:
        self._context, self._params = context, params
        self._local = SuffixAutomaton(params.depth)
        self._text = Entry(self._local)
        self._earlier = remembered(context.memory, params.depth, params.answers) if params.look_in != LOCAL else None
        self._global, self._answer = SuffixAutomaton(params.depth), Answer()
        self._place, self._read = Place(), 0  # of the text's ending in the global tree, and tokens read so far
        self._answers = 0  # in the global tree
        self._found: dict[Literal["local", "global"], Match] = {}

    def propose(self) -> Draft:
        """The root, and below it the better of two speculated trees."""
        self._follow()  # L1
        self._found = {}
        if self._params.look_in != GLOBAL:
            self._found[LOCAL] = self._best(self._local, self._text.place, here=1)
        if self._earlier is not None:
            with self._earlier.reading():
                self._found[GLOBAL] = self._best(self._global, self._place, here=0)
        tree, nodes, chosen = Builder(self._context.text[-1]), [0], self._chosen
        for guess in self._found[chosen].guesses:
            nodes.append(tree.add(guess.token, nodes[guess.parent + 1], f"{chosen}:{guess.count}"))
        return tree.draft()

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Remember what is written."""
        self._answer.extend(verdict.emitted)

    def panel(self) -> SuffixPanel:
        """What both trees offered, and where the ending stands."""
        panel: SuffixPanel = {"answers": self._answers}
        if LOCAL in self._found:
            panel["local"] = self._found[LOCAL].summary()
        if GLOBAL in self._found:
            panel["earlier"] = self._found[GLOBAL].summary()
        best = self._found[self._chosen]
        if best.guesses:
            ending = self._context.text[self._read - best.p : self._read]
            panel |= {"chosen": self._chosen, "ending": ending, "places": self._places(ending)}
        return panel

    @property
    def _chosen(self) -> Literal["local", "global"]:
        return max(self._found, key=lambda name: self._found[name].score)  # L5

    def _follow(self) -> None:
        """Add what is new of the text to the local tree, and find its ending in the global one."""
        text = self._context.text
        if self._earlier is not None and not self._read:
            self._answers, self._global, self._answer = self._earlier.begin()
            self._read = max(0, len(text) - self._params.depth)
        self._text.update(text)
        for token in text[self._read :]:
            self._global.advance(self._place, token)
        self._read = len(text)

    def _best(self, automaton: SuffixAutomaton, place: Place, here: int) -> Match:
        """The best match of one tree; `here` is 1 if the text's own end stands in it."""
        best = Match(0, 0, [], 0.0)
        for lengths, state in automaton.endings(place):
            for p in lengths:  # L2
                most = min(int(self._params.alpha * p + 1e-6), self._params.c, self._context.largest_step - 1)
                depth = min(self._params.depth - p, self._context.room)
                if most <= best.score:
                    break  # no guesses behind this ending or a shorter one could be better
                if depth > 0:
                    guesses = self._grow(automaton, state, most, depth)
                    score = round(sum(guess.share for guess in guesses), 9)  # L4; equal sums may differ by rounding
                    if score > best.score:
                        best = Match(p, automaton.count(state) - here, guesses, score)
                if most <= depth:
                    break  # a shorter ending of the same state has the same guesses, or fewer
        return best

    def _grow(self, automaton: SuffixAutomaton, state: int, most: int, depth: int) -> list[Guess]:
        """At most `most` guesses behind the runs of a state, at most `depth` deep."""
        ends, least, chain = self._context.end_tokens, self._params.epsilon, self._params.shape == "chain"
        guesses = list[Guess]()
        heap = [(-1.0, 0, Guess(-1, -1, 0, 1.0), state, 0)]  # the largest D first; of equals the one found first
        found = 0
        while heap and len(guesses) <= most:  # L3
            _, _, guess, state, deep = heappop(heap)
            guesses.append(guess)
            if deep == depth or guess.token in ends:
                continue
            children = automaton.children(state)
            total = automaton.count(state) if self._params.count_end else sum(child.count for child in children)
            for child in children[: 1 if chain else None]:
                share = guess.share * child.count / total
                if share < least:
                    break
                found += 1
                parent = len(guesses) - 2
                heappush(heap, (-share, found, Guess(child.token, parent, child.count, share), child.state, deep + 1))
        return guesses[1:]

    def _places(self, ending: Sequence[int]) -> list[SuffixPlace]:
        """The latest places where an ending stands in the chosen tree, first one for each token that came next."""
        texts = [self._context.text[: self._read]]
        if self._chosen == GLOBAL and self._earlier is not None:
            texts = [answer for answer in reversed(self._earlier.answers()) if answer is not self._answer]
        latest, others = dict[int, SuffixPlace](), list[SuffixPlace]()
        for number, text in enumerate(texts, start=self._chosen == GLOBAL):
            for place in places_behind(text, ending):
                found: SuffixPlace = {"answer": number, "place": place, "follows": text[place : place + _FOLLOWS]}
                if text[place] in latest:
                    others.append(found)
                else:
                    latest[text[place]] = found
                if len(latest) == _PLACES:  # earlier answers may be long, and no place further back is named
                    return [*latest.values()]
        return [*latest.values(), *others][:_PLACES]


def places_behind(text: Sequence[int], ending: Sequence[int]) -> Iterator[int]:
    """The places right behind an ending in a text at which it goes on, the last one first."""
    p = len(ending)
    for place in range(len(text) - 1, p - 1, -1):
        if text[place - 1] == ending[-1] and [*text[place - p : place]] == [*ending]:
            yield place
