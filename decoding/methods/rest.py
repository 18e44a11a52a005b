"""REST: retrieval-based speculative decoding (He et al., 2023, arXiv 2311.08252).

Look the end of the text up in a datastore of other texts, and verify what most often came next there.

Algorithm
  L1  find the longest suffix of the text, root included, of n_max down to n_min tokens, that is in the datastore
  L2  read the next m tokens at up to k of its occurrences, spread evenly over all of them
  L3  count every prefix of these continuations, and keep the c most frequent ones; of equals the shorter ones
  L4  a prefix is never rarer than what continues it, so those kept are a tree: each prefix is a node below the root
  L5  if not even n_min tokens match, the root alone: an ordinary autoregressive step

  symbol        meaning
  n_max, n_min  longest and shortest suffix to match
  k             occurrences that are read
  m             tokens read at each
  c             guesses per step

Differs from the paper
  Its reference code reads the first k occurrences by token ids, joins one document to the next, keeps about half of the
  guesses, also where it finds fewer than c (15 of 27), and drafts an arbitrary token where it finds none.
  Here occurrences are spread, documents stay apart, all guesses up to c are verified, and without a match nothing is
  drafted. Under sampling it draws once per path of the tree, which changes the output's distribution; here the
  engine verifies, and it is the target's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..errors import ParamError
from ..params import Params, param
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import RestPanel

if TYPE_CHECKING:
    from ..parts.datastore import Datastore

_SHOWN = 8  # guesses whose counts the panel holds


@dataclass(frozen=True, slots=True)
class RestParams(Params):
    """The suffix to match, and how many guesses are made."""

    c: int = param(64, label="Guesses", symbol="c", help="Most guesses per step", min=1, max=255)
    longest: int = param(16, label="Longest suffix", symbol="n_max", help="Longest suffix to match", min=1, max=64)
    shortest: int = param(2, label="Shortest suffix", symbol="n_min", help="Shortest suffix to match", min=1, max=64)
    length: int = param(10, label="Length", symbol="m", help="Tokens to read after each match", min=1, max=64)
    matches: int = param(5000, label="Matches", symbol="k", help="Matches to use", min=1, max=20_000)

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "SmolLM2 on a CPU": {"c": 3, "length": 6, "shortest": 1},
        "pocket on a CPU": {"c": 5, "length": 10, "shortest": 1},
    }

    def check(self) -> None:
        """Refuse an empty range of suffixes."""
        if self.shortest > self.longest:
            raise ParamError(f"shortest must be at most longest ({self.longest}), not {self.shortest}")


class Rest(Method):
    """Retrieve what followed the same tokens in other texts."""

    name = "rest"
    label = "REST"
    paper = "He et al. 2023, arXiv 2311.08252"
    Params = RestParams
    Panel = RestPanel
    needs = frozenset({"datastore"})

    def __init__(self, context: Context, params: RestParams) -> None:
        self._context, self._params = context, params
        self._store: Datastore = context.parts["datastore"]
        self._panel: RestPanel = {}

    def propose(self) -> Draft:
        """Propose the root and the most frequent continuations of the text's end in the datastore."""
        context, params = self._context, self._params
        tree, nodes = Builder(context.text[-1]), dict[tuple[int, ...], int]({(): 0})
        length = min(params.length, context.room)
        self._panel = {}
        if length < 1:
            return tree.draft()
        limits = params.longest, params.shortest, length, params.matches
        matches = self._store.continuations(context.text, *limits)  # L1, L2
        prefixes = matches.prefixes(min(params.c, context.largest_step - 1), context.end_tokens)  # L3
        for prefix, count in prefixes:
            nodes[prefix] = tree.add(prefix[-1], nodes[prefix[:-1]], f"datastore:{count}")  # L4
        top: JSON = [[list(prefix), count] for prefix, count in prefixes[:_SHOWN]]
        self._panel = {
            "span": matches.span,
            "ending": context.text[len(context.text) - matches.span :],
            "hits": matches.hits,
            "read": matches.ways.shape[1],
            "nodes": len(prefixes),
            "top": top,
        }
        return tree.draft()  # L5

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Learn nothing: the datastore stays as it is."""

    def panel(self) -> RestPanel:
        """Return the suffix that matched, its occurrences, and the most frequent continuations with their counts."""
        return self._panel
