"""REST: retrieval-based speculative decoding (He et al., 2023, arXiv 2311.08252).

Look the end of the text up in texts that others wrote, and verify what most often came next there.

Algorithm
  L1  find the longest end of the text, root included, of n_max down to n_min tokens, that stands in the datastore
  L2  read the next m tokens at up to k of the places where it stands, spread evenly over all of them
  L3  count every prefix of these continuations, and keep the c most frequent ones; of equals the shorter ones
  L4  a prefix is never rarer than what continues it, so those kept are a tree: each prefix is a node below the root
  L5  where not even n_min tokens are found, the root alone: an ordinary autoregressive step

  symbol        meaning
  n_max, n_min  tokens of the text that must be found, at first and at last
  k             places that are read
  m             tokens read at each
  c             guesses per step

Differs from the paper
  Its reference code reads the first k places in the order of token ids, joins one document to the next, keeps about
  half of the guesses, also where it finds fewer than c (15 of 27), and drafts an arbitrary token where it finds none.
  Here places are spread, documents end where they end, all guesses up to c are verified, and nothing found means
  nothing drafted. Under sampling it draws once per path of the tree, which changes the output's distribution; here the
  engine verifies, and it is the target's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypedDict

from ..errors import ParamError
from ..params import Params, param
from ..tree import Builder
from ..types import JSON, Draft, Token, Verdict
from .base import Context, Method

if TYPE_CHECKING:
    from ..parts.datastore import Store

_SHOWN = 8  # guesses whose counts the panel holds


@dataclass(frozen=True, slots=True)
class RestParams(Params):
    """What is looked up, and how much of what is found becomes the draft."""

    c: int = param(64, label="Guesses", symbol="c", help="Nodes of the tree beside the root", min=1, max=255)
    longest: int = param(
        16, label="Longest end", symbol="n_max", help="Tokens of the text that must be found, at first", min=1, max=64
    )
    shortest: int = param(
        2, label="Shortest end", symbol="n_min", help="Tokens of the text that must be found, at last", min=1, max=64
    )
    length: int = param(10, label="Tokens read", symbol="m", help="Depth of the tree at most", min=1, max=64)
    matches: int = param(5000, label="Places read", symbol="k", help="Of all that are found", min=1, max=20_000)

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "SmolLM2 on a CPU": {"c": 3, "length": 6, "shortest": 1},
        "pocket on a CPU": {"c": 5, "length": 10, "shortest": 1},
    }

    def check(self) -> None:
        """The range of ends must not be empty."""
        if self.shortest > self.longest:
            raise ParamError(f"shortest must be at most longest ({self.longest}), not {self.shortest}")


class RestPanel(TypedDict, total=False):
    """What was found, and the commonest of it; nothing where no guess was wanted."""

    span: int  # tokens of the text's end that were found
    ending: list[Token]  # those tokens
    hits: int  # places where they stand
    read: int  # places read
    nodes: int  # guesses
    top: list[tuple[list[Token], int]]  # the first guesses, each with its prefix, and how often it stands there


class Rest(Method):
    """Retrieve what followed the same words elsewhere."""

    name = "rest"
    label = "REST"
    paper = "He et al. 2023, arXiv 2311.08252"
    Params = RestParams
    Panel = RestPanel
    needs = frozenset({"datastore"})

    def __init__(self, context: Context, params: RestParams) -> None:
        self._context, self._params = context, params
        self._store: Store = context.parts["datastore"]
        self._panel: RestPanel = {}

    def propose(self) -> Draft:
        """The root, and below it what most often follows the end of the text in the datastore."""
        context, params = self._context, self._params
        tree, nodes = Builder(context.text[-1]), dict[tuple[int, ...], int]({(): 0})
        length = min(params.length, context.room)
        most = min(params.c, context.largest_step - 1)
        self._panel = {}
        if length < 1:
            return tree.draft()
        found = self._store.continuations(
            context.text, params.longest, params.shortest, length, params.matches
        )  # L1, L2
        kept = found.prefixes(most, context.end_tokens)  # L3
        for prefix, count in kept:
            nodes[prefix] = tree.add(prefix[-1], nodes[prefix[:-1]], f"datastore:{count}")  # L4
        top: JSON = [[list(prefix), count] for prefix, count in kept[:_SHOWN]]
        self._panel = {
            "span": found.span,
            "ending": context.text[len(context.text) - found.span :],
            "hits": found.hits,
            "read": found.ways.shape[1],
            "nodes": len(kept),
            "top": top,
        }
        return tree.draft()  # L5

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Nothing to learn: the datastore stays as it is."""

    def panel(self) -> RestPanel:
        """How much of the text was found and where, and the commonest continuations with their counts."""
        return self._panel
