"""Token Recycling (Luo et al., 2024, arXiv 2408.08696).

The tokens that the target found likely behind a token, and did not choose, are guessed where that token comes again.

Algorithm
  L1  M holds for every token that was read the k tokens that the target last found the likeliest behind it
  L2  a tree of fixed shape is filled from the root down: node (r1, ..., rd) gets entry rd of the row of the token
      above it; where that token has no row yet, nothing hangs below it
  L3  the target reads the tree in one pass; the engine accepts a path
  L4  every node that was read, rejected ones too, gives the row of its token anew: the target's k likeliest there

  symbol  meaning
  M       the table of rows (the paper's adjacency matrix)
  k       entries of a row

Differs from the paper
  Rows exist once their token was read, so that no guess is made from an empty one, and the rows longest without a
  change make room where there are too many. Of nodes with the same token the accepted one gives the row. The paper's
  tree was found for models of 7B to 33B; others are grown here from how often each rank was right (measured). A table
  can begin with the pairs of tokens of the prompt, which costs no pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, TypedDict

from ..drafting.candidate_table import Behind, CandidateTable, Given, Row, remembered
from ..params import Params, param
from ..parts.medusa_tree import Path, Tree, from_paths, given, grow
from ..tree import Builder
from ..types import JSON, Draft, Token, Verdict
from .base import Context, Method

_DEEPEST = 8  # of a grown tree
# Children of the nodes of the paper's tree, level by level in the order of their ranks; none where a level ends early.
_PAPER = (
    (8,),
    (8, 4, 3, 2, 1, 1, 1, 1),
    (8, 3, 2, 1, 1, 1, 1, 1, 2, 1, 0, 0, 1, 0, 0, 1, 0, 1, 1),
    (5, 2, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1),
    (3, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1),
    (2, 0, 0, 1),
)
# How often entry r of a row is the token that comes, at every depth: measured with SmolLM2 on prompts in English.
_HITS = (0.37, 0.1, 0.05, 0.04, 0.025, 0.02, 0.015, 0.01)

# Ten guesses, grown as if the first entry was right more often the deeper it stands (0.29, 0.35, 0.46, 0.54: measured).
_DEEP = "0;0,0;1;0,0,0;2;3;1,0;0,0,0,0;0,1;4"
# On a model whose passes are bound by arithmetic second guesses cost more than they bring.
_CHAIN = "0;0,0;0,0,0;0,0,0,0"


@dataclass(frozen=True, slots=True)
class TokenRecyclingParams(Params):
    """The table and the tree."""

    k: int = param(8, label="Row", symbol="k", help="Likeliest tokens kept behind every token", min=1, max=64)
    tree: str = param(
        "paper",
        label="Tree",
        help="The paper's 80 guesses, a grown one, or your own",
        choices=("paper", "grown", "given"),
    )
    size: int = param(80, label="Grown tree", help="Guesses of the grown tree, at most", min=1, max=255)
    paths: str = param("0;1;0,0", label="Given tree", help="Paths of ranks, as text, JSON or published lists")
    warm_start: str = param(
        "off",
        label="Warm start",
        help="Begin with an empty table, or with that of earlier runs",
        choices=("off", "across"),
    )

    prompt_as_reference: bool = param(
        False, label="Prompt as reference", help="Rows begin with what follows their token in the prompt"
    )

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "SmolLM2 on a CPU": {"tree": "given", "paths": _DEEP, "warm_start": "across", "prompt_as_reference": True},
        "pocket on a CPU": {"tree": "given", "paths": _CHAIN, "warm_start": "across", "prompt_as_reference": True},
    }

    @property
    def nodes(self) -> int:
        """Nodes of the largest step."""
        return len(self.shape.parents)

    @property
    def ranked(self) -> int:
        """The entries of a row."""
        return self.k

    @property
    def shape(self) -> Tree:
        """The tree that the settings name, as far as rows are long enough."""
        if self.tree == "grown":
            return grow([_HITS[: self.k]] * _DEEPEST, self.size)
        return _paper() if self.tree == "paper" else given(self.paths)

    def check(self) -> None:
        """The text must be a tree, whether it is used or not."""
        given(self.paths)


class RecycledRow(TypedDict):
    """A row of the table that guesses were read from."""

    token: Token
    entries: list[Token]
    ago: int  # steps since it was given; 0: by an earlier run or a prompt
    behind: Given  # what became of the node that gave it; or a prompt did


class TokenRecyclingPanel(TypedDict, total=False):
    """The rows that were read, and those that became others."""

    rows: list[RecycledRow]  # in the order of the tree
    changed: list[
        tuple[Token, list[Token], list[Token], Behind]
    ]  # token, the row before, the row now, what became of its node
    known: int  # rows of the table


class TokenRecycling(Method):
    """Guess what the target found likely behind each token when it last read it."""

    name = "token_recycling"
    label = "Token Recycling"
    paper = "Luo et al. 2024, arXiv 2408.08696"
    Params = TokenRecyclingParams
    Panel = TokenRecyclingPanel

    def __init__(self, context: Context, params: TokenRecyclingParams) -> None:
        self._context, self._shape = context, params.shape
        across = params.warm_start == "across"
        self._table = remembered(context.memory, params.k) if across else CandidateTable()  # L1
        if params.prompt_as_reference:
            self._table.read(context.text, params.k)
        self._run, self._step = self._table.begin(), 0
        self._panel: TokenRecyclingPanel = {}

    def propose(self) -> Draft:
        """The root, and below it the tree filled from the table."""
        context, shape = self._context, self._shape
        tree, tokens, read = Builder(context.text[-1]), {0: context.text[-1]}, dict[int, Row]()
        nodes = {0: 0}  # node of the shape -> node of the draft
        for node, (parent, depth, rank) in enumerate(zip(shape.parents, shape.depths, shape.ranks, strict=True)):
            above = tokens.get(parent)
            if node == 0 or above is None or depth > context.room or len(tree) == context.largest_step:
                continue
            row = self._table.row(above)
            if row is None or above in context.end_tokens or rank >= len(row.entries):
                continue
            read[above] = row
            tokens[node] = row.entries[rank]  # L2
            nodes[node] = tree.add(tokens[node], nodes[parent], f"recycled:{rank}")
        rows: list[RecycledRow] = [
            {
                "token": token,
                "entries": [*row.entries],
                "ago": self._step - row.step if row.run == self._run else 0,
                "behind": row.behind,
            }
            for token, row in read.items()
        ]
        self._panel = {"rows": rows}
        return tree.draft()  # L3

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Give the rows of all tokens that were read anew."""
        accepted, given = set(verdict.path), dict[int, Row]()
        for node, (token, entries) in enumerate(zip(draft.tokens, verdict.ranked, strict=True)):  # L4
            if token not in given or node in accepted or given[token].behind == "rejected":
                behind: Behind = "accepted" if node in accepted else "rejected"
                given[token] = Row(tuple(entries), self._step, behind, self._run)
        before = {token: self._table.put(token, row) for token, row in given.items()}
        changed: JSON = [
            [token, [*before[token]], [*row.entries], row.behind]
            for token, row in given.items()
            if before[token] != row.entries
        ]
        self._panel["changed"] = changed
        self._panel["known"] = len(self._table)
        self._step += 1

    def panel(self) -> TokenRecyclingPanel:
        """The rows that guesses came from, and those that the target's answers changed."""
        return self._panel


@cache
def _paper() -> Tree:
    """The tree of the paper's figure."""
    level, paths = [Path()], list[Path]()
    for counts in _PAPER:
        level = [(*path, rank) for path, count in zip(level, counts, strict=False) for rank in range(count)]
        paths += level
    return from_paths(paths)
