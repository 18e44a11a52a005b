"""Token Recycling (Luo et al., 2024, arXiv 2408.08696).

The tokens that the target found likely after a token, and did not choose, are guessed when that token comes again.

Algorithm
  L1  M holds for every token that was read the k tokens that the target last found likeliest after it
  L2  a tree of fixed shape is filled from the root down: node (r1, ..., rd) gets entry rd of the row of its parent's
      token; if that token has no row yet, its node has no children
  L3  the target reads the tree in one pass; the engine accepts a path
  L4  every node that was read, even a rejected one, replaces the row of its token: the target's k likeliest there

  symbol  meaning
  M       the table of rows (the paper's adjacency matrix)
  k       entries of a row

Differs from the paper
  Rows exist once their token was read, so no guess is made from an empty one; where there are too many, those that were
  not replaced for longest make room. Of nodes with the same token the accepted one gives the row. The paper's tree was
  searched for models of 7B to 33B; others are grown here from how often each rank was right (measured). A table can
  begin with the pairs of tokens in the prompt, which costs no pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..drafting.candidate_table import CandidateRow, CandidateTable, RowOrigin
from ..params import Params, param
from ..parts.medusa_tree import TreeShape, given, grow
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import RecycledRow, TokenRecyclingPanel

_DEEPEST = 8  # of a grown tree
# The tree of the paper's figure, level by level.
_PAPER = (
    "0;1;2;3;4;5;6;7;0,0;0,1;0,2;0,3;0,4;0,5;0,6;0,7;1,0;1,1;1,2;1,3;2,0;2,1;2,2;3,0;3,1;4,0;5,0;6,0;7,0;0,0,0;0,0,1;"
    "0,0,2;0,0,3;0,0,4;0,0,5;0,0,6;0,0,7;0,1,0;0,1,1;0,1,2;0,2,0;0,2,1;0,3,0;0,4,0;0,5,0;0,6,0;0,7,0;1,0,0;1,0,1;"
    "1,1,0;2,0,0;3,0,0;4,0,0;5,0,0;0,0,0,0;0,0,0,1;0,0,0,2;0,0,0,3;0,0,0,4;0,0,1,0;0,0,1,1;0,0,2,0;0,0,3,0;0,0,4,0;"
    "0,1,0,0;0,2,0,0;1,0,0,0;2,0,0,0;3,0,0,0;0,0,0,0,0;0,0,0,0,1;0,0,0,0,2;0,0,0,1,0;0,0,0,2,0;0,0,1,0,0;0,1,0,0,0;"
    "1,0,0,0,0;0,0,0,0,0,0;0,0,0,0,0,1;0,0,0,1,0,0"
)
# How often entry r of a row is the next token, at every depth: measured with SmolLM2 on prompts in English.
_HITS = (0.37, 0.1, 0.05, 0.04, 0.025, 0.02, 0.015, 0.01)

# Ten guesses, grown as if the first entry was right more often deeper down (0.29, 0.35, 0.46, 0.54: measured).
_DEEP = "0;0,0;1;0,0,0;2;3;1,0;0,0,0,0;0,1;4"
# On a model whose passes are compute-bound, second guesses cost more than they gain.
_CHAIN = "0;0,0;0,0,0;0,0,0,0"


@dataclass(frozen=True, slots=True)
class TokenRecyclingParams(Params):
    """The table and the tree."""

    k: int = param(8, label="Row length", symbol="k", help="Likeliest tokens to keep per token", min=1, max=64)
    tree: str = param(
        "paper",
        label="Tree",
        help="The paper's tree of 80 guesses, one grown from measured hits of each rank, or given",
        choices=("paper", "grown", "given"),
    )
    size: int = param(80, label="Grown tree: size", help="Most guesses in the grown tree", min=1, max=255)
    paths: str = param("0;1;0,0", label="Given tree: paths", help="Paths of ranks: as text, JSON or a published list")
    warm_start: str = param(
        "off", label="Warm start", help="Start empty, or with the table of earlier runs", choices=("off", "across")
    )
    prompt_as_reference: bool = param(
        False, label="Read the prompt", help="Fill rows from pairs of prompt tokens first"
    )

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "SmolLM2 on a CPU": {"tree": "given", "paths": _DEEP, "warm_start": "across", "prompt_as_reference": True},
        "pocket on a CPU": {"tree": "given", "paths": _CHAIN, "warm_start": "across", "prompt_as_reference": True},
    }

    @property
    def nodes(self) -> int:
        """Count the nodes of the largest step."""
        return len(self.shape.parents)

    @property
    def ranked(self) -> int:
        """Return the entries of a row."""
        return self.k

    @property
    def shape(self) -> TreeShape:
        """Return the tree that the settings name; a grown one fits the row length."""
        if self.tree == "grown":
            return grow([_HITS[: self.k]] * _DEEPEST, self.size)
        return given(_PAPER if self.tree == "paper" else self.paths)

    def check(self) -> None:
        """Refuse a text that is not a tree, whether it is used or not."""
        given(self.paths)


class TokenRecycling(Method):
    """Guess what the target found likely after each token when it last read it."""

    name = "token_recycling"
    label = "Token Recycling"
    paper = "Luo et al. 2024, arXiv 2408.08696"
    Params = TokenRecyclingParams
    Panel = TokenRecyclingPanel

    def __init__(self, context: Context, params: TokenRecyclingParams) -> None:
        self._context, self._shape = context, params.shape
        across = params.warm_start == "across"
        self._table = context.remember(f"table k={params.k}", CandidateTable) if across else CandidateTable()  # L1
        if params.prompt_as_reference:
            self._table.read(context.text, params.k)
        self._run, self._step = self._table.begin(), 0
        self._rows, self._written = dict[int, CandidateRow](), dict[int, CandidateRow]()  # that a step read, and wrote
        self._before = dict[int, tuple[int, ...]]()  # the entries that were replaced

    def propose(self) -> Draft:
        """Propose the root and the tree, filled from the table."""
        context, self._rows = self._context, {}
        tree, nodes, tokens = Builder(context.text[-1]), {0: 0}, {0: context.text[-1]}  # by the nodes of the shape
        for node, parent, depth, rank in self._shape.rows:
            if parent not in nodes or depth > context.room or len(tree) == context.largest_step:
                continue
            above = tokens[parent]
            row = self._table.row(above)
            if row is None or above in context.end_tokens or rank >= len(row.entries):
                continue
            self._rows[above] = row
            tokens[node] = row.entries[rank]  # L2
            nodes[node] = tree.add(tokens[node], nodes[parent], f"recycled:{rank}")
        return tree.draft()  # L3

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Replace the rows of all tokens that were read."""
        accepted, written = set(verdict.path), dict[int, CandidateRow]()
        for node, (token, entries) in enumerate(zip(draft.tokens, verdict.ranked, strict=True)):  # L4
            if token not in written or node in accepted or written[token].origin == "rejected":
                origin: RowOrigin = "accepted" if node in accepted else "rejected"
                written[token] = CandidateRow(tuple(entries), self._step, origin, self._run)
        self._written, self._before = written, {token: self._table.put(token, row) for token, row in written.items()}
        self._step += 1

    def panel(self) -> TokenRecyclingPanel:
        """Return the rows that guesses came from, and those that the target's answers changed."""
        rows: list[RecycledRow] = []
        for token, row in self._rows.items():
            ago = self._step - 1 - row.step if row.run == self._run else 0
            rows.append({"token": token, "entries": [*row.entries], "ago": ago, "behind": row.origin})
        replaced = ((token, self._before[token], row) for token, row in self._written.items())
        changed: JSON = [
            [token, [*before], [*row.entries], row.origin] for token, before, row in replaced if before != row.entries
        ]
        return {"rows": rows, "changed": changed, "known": len(self._table)}
