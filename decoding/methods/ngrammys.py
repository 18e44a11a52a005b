"""N-Grammys (Stewart et al., 2024, arXiv 2411.03786).

Guess with n-grams that cost nothing: those of the text so far, and those that the model itself holds. The best of
them is seldom right, but one of the best k often is, so verify k guesses of w tokens each.

Algorithm
  L1  once per model: the bigram ranks what follows every token, the unigram what follows nothing at all
  L2  context: find all earlier occurrences of the text's last q tokens; the next w tokens after each are a guess
  L3  rank these by how often they occur, then by how late; the first k of them are rows
  L4  while rows are missing: the next likeliest token after the last one, then w-1 times the likeliest after that
  L5  all rows start at the root and are verified in one pass; the longest accepted one is written, and a bonus

  symbol  meaning
  k       guesses verified: rows of the paper's batch
  w       tokens of a guess
  q       tokens that an occurrence must match

Differs from the paper
  Its batch repeats the context for every row; a tree has it once, and layout "trie" merges equal prefixes too.
  Its bigram is what follows a token alone. For a small vocabulary, ours is the mean over texts that the model writes
  itself, one from every token: a model trained on answers only knows little of a lone token (parts/tables.py). A model
  that begins every text with certain marks has read them before each token of its tables.
  No row is verified twice: the next candidate replaces it, while there is one. A copy that meets the text's end
  continues along the bigram; tail "full" drops it, as the appendix's code does. That code ranks unigrams by an inner
  product, the paper by a distance. The other way to extend a bigram, by the model's own greedy text, is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from ..drafting.suffix_index import SuffixIndex
from ..params import Params, param
from ..parts.rankings import RANKINGS
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import NGrammysPanel, NGrammysRow

if TYPE_CHECKING:
    from ..parts.tables import NgramTables

_LATEST, _SHOWN = 4096, 32  # occurrences read, a bound on a step's time; and those in the panel
_STRATEGIES = ("mixed", "context", "extended", "bigram", "unigram")
Candidate = tuple[tuple[int, ...], list[str], NGrammysRow]  # tokens, sources before a chain, and the panel's row


@dataclass(frozen=True, slots=True)
class NGrammysParams(Params):
    """Where guesses come from, how many there are and how long they are."""

    k: int = param(10, label="Guesses", symbol="k", help="Rows to verify per step", min=1, max=32)
    w: int = param(10, label="Guess length", symbol="w", help="Tokens per row", min=1, max=16)
    q: int = param(1, label="Query length", symbol="q", help="Tokens of the text's end to match", min=1, max=16)
    strategy: str = param(
        "mixed", label="Strategy", help="Where rows come from; bigram and unigram guess one token", choices=_STRATEGIES
    )
    layout: str = param("rows", label="Layout", help="Keep rows separate, or merge prefixes", choices=("rows", "trie"))
    tail: str = param(
        "bigram", label="Short copies", help="Extend a short copy with bigrams, or drop it", choices=("bigram", "full")
    )
    ranking: str = param(
        "distance",
        label="Unigram ranking",
        help="Rank unigrams by distance, as the paper, or by inner product, as its code",
        choices=RANKINGS,
    )

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "paper": {},
        "3B on A100": {"k": 25, "w": 14},
        "As in the appendix's code": {"tail": "full", "ranking": "product"},
        "SmolLM2 on a CPU": {"k": 3, "w": 1, "layout": "trie"},
        "pocket on a CPU": {"k": 2, "w": 2, "layout": "trie"},
    }

    @property
    def depth(self) -> int:
        """Count the tokens of a row under the chosen strategy."""
        return 1 if self.strategy in ("bigram", "unigram") else self.w

    @property
    def nodes(self) -> int:
        """Count the root and k rows."""
        return 1 + self.k * self.depth


class NGrammys(Method):
    """Verify the best n-grams of context and model together."""

    name = "ngrammys"
    label = "N-Grammys"
    paper = "Stewart et al. 2024, arXiv 2411.03786"
    Params = NGrammysParams
    Panel = NGrammysPanel
    needs = frozenset({"tables"})

    def __init__(self, context: Context, params: NGrammysParams) -> None:
        self._context, self._params = context, params
        self._tables: NgramTables = context.parts["tables"]  # L1
        self._index = SuffixIndex(params.q, params.q)
        self._width = self._nodes = 0  # of the rows in tokens, and of the tree
        self._query: Sequence[int] = ()
        self._places: Sequence[int] = ()
        self._rows, self._accepted = list[NGrammysRow](), list[int]()  # the proposed rows, and their accepted tokens

    def propose(self) -> Draft:
        """Propose the root and up to k rows below it."""
        context, params = self._context, self._params
        self._index.update(context.text)
        self._width = width = min(params.depth, context.room)
        self._query, self._places, self._accepted = (), (), []
        rows, tree = dict[tuple[int, ...], NGrammysRow](), Builder(context.text[-1])
        fresh = (row for row in self._candidates(width) if row[0] not in rows)
        for tokens, sources, facts in islice(fresh, params.k) if width > 0 else ():
            rows[tokens] = {**facts, "tokens": [*tokens]}
            fitting = tokens[: context.largest_step - len(tree)]
            names = [*sources, *(f"chain:{link}" for link in range(1, len(tokens)))][: len(fitting)]
            tree.chain(fitting, names, merge=params.layout == "trie")  # L5
        self._rows, self._nodes = [*rows.values()], len(tree)
        return tree.draft()

    def _candidates(self, width: int) -> Iterator[Candidate]:
        """Yield rows in the order of their rank."""
        strategy, text, tables = self._params.strategy, self._context.text, self._tables
        if strategy in ("mixed", "context"):
            yield from self._from_context(width)
        bigrams = tables.bigrams(text[-1]) if strategy in ("mixed", "extended", "bigram") else ()
        for rank, (token, p) in enumerate(bigrams):  # L4
            facts: NGrammysRow = {"strategy": "bigram", "rank": rank, "p": round(p, 6)}
            yield self._grown((token,), width), [f"bigram:{rank}"], facts
        for rank, token in enumerate(tables.unigrams(self._params.ranking) if strategy == "unigram" else ()):
            yield (token,), [f"unigram:{rank}"], {"strategy": "unigram", "rank": rank}

    def _from_context(self, width: int) -> Iterator[Candidate]:
        """Yield what followed earlier occurrences of the query, the most frequent first."""
        context, text = self._context, self._context.text
        self._query = text[-self._params.q :]
        self._places = self._index.places(self._query)  # L2
        copies = defaultdict[tuple[int, ...], list[int]](list)  # a row -> the positions that it was copied from
        for place in self._places[-_LATEST:]:
            copied = tuple(text[place : place + width])
            if len(copied) == width and context.end_tokens.isdisjoint(copied):
                copies[copied].append(place)
            elif len(copied) == width or self._params.tail == "bigram":
                copies[self._grown(copied, width)].append(place)
        ranked = nlargest(self._params.k, copies.items(), lambda row: (len(row[1]), row[1][-1]))  # L3
        for tokens, from_places in ranked:
            latest = from_places[-1]
            span = range(latest, min(latest + len(tokens), len(text)))
            sources = [f"{'prompt' if at < context.prompt_length else 'output'}:{at}" for at in span]
            yield tokens, sources, {"strategy": "context", "count": len(from_places), "place": latest}

    def _grown(self, tokens: tuple[int, ...], width: int) -> tuple[int, ...]:
        """Extend tokens by the bigram, up to an end of text."""
        grown = [*tokens, *self._tables.chain(tokens[-1], width - len(tokens))]
        ends = (place for place, token in enumerate(grown, start=1) if token in self._context.end_tokens)
        return tuple(grown[: next(ends, width)])

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Keep the accepted tokens. There is nothing to learn: the text is the memory."""
        self._accepted = [draft.tokens[node] for node in verdict.path[1:]]

    def panel(self) -> NGrammysPanel:
        """Return the rows with their origin, the query's matches, the savings of merging, the longest accepted row."""
        rows, accepted, places = self._rows, self._accepted, self._places
        fitting = (i for i, row in enumerate(rows) if row["tokens"][: len(accepted)] == accepted)
        winner = next(fitting, None) if accepted else None
        panel: NGrammysPanel = {"k": self._params.k, "w": self._width, "winner": winner}
        if self._query:
            panel |= {"query": [*self._query], "matches": len(places), "places": [*places[-_SHOWN:]]}
        return {**panel, "nodes": self._nodes, "unmerged": 1 + sum(len(row["tokens"]) for row in rows), "rows": rows}
