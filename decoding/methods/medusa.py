"""Medusa (Cai et al., 2024, arXiv 2401.10774).

Small heads on the target's last hidden state guess the next tokens all at once; the likeliest guesses are combined
into a tree, which the target reads in one pass.

Algorithm
  L1  choose a tree of paths (i1, ..., ik), each with its prefixes: guess i1 of head 1, ..., guess ik of head k. A
      sparse one grows by the neighbour that is likeliest to be accepted: the product of the accuracies on its path
  L2  the first step is the root alone: there is no hidden state yet
  L3  from h, with which the target chose the root, every head k lists its likeliest tokens for k positions later
  L4  node (i1, ..., ik) gets token ik of head k's list, whatever token is above it
  L5  the target reads the tree in one pass; the engine accepts a path that is the target's own choice (lossless), or
      the longest whose every token x is typical: p(x) > min(epsilon, delta exp(-H(p)))
  L6  h is now the hidden state at the last accepted node

  symbol          meaning
  K               heads
  s               guesses per head in a Cartesian tree: s1 + s1 s2 + ... nodes
  epsilon, delta  bounds of typical acceptance
  p, H(p)         the target's distribution after temperature and filters, and its entropy

Differs from the paper
  Under typical acceptance too, the token after the accepted path is drawn from p: the paper takes the likeliest.
  A grown tree leaves out guesses that were never right; a tree that is deeper than the heads is cut there.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..params import Params, param, share
from ..parts.medusa_tree import RANKS, TreeShape, cartesian, default, given, sizes_in
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import MedusaPanel

if TYPE_CHECKING:
    import torch

    from ..parts.heads import Guesser


@dataclass(frozen=True, slots=True)
class MedusaParams(Params):
    """The tree, and the acceptance rule."""

    tree: str = param(
        "sparse", label="Tree", help="Grown tree, Cartesian product, or given", choices=("sparse", "cartesian", "given")
    )
    size: int = param(63, label="Sparse tree: size", help="Most guesses in the sparse tree", min=1, max=256)
    sizes: str = param("4,3,2", label="Cartesian tree: sizes", symbol="s", help="Guesses of head 1, head 2, ...")
    paths: str = param("0;1;0,0", label="Given tree: paths", help="Paths of ranks: as text, JSON or a published list")
    heads: int = param(0, label="Heads", symbol="K", help="Number of heads to use (0: all)", min=0, max=64)
    acceptance: str = param(
        "lossless",
        label="Acceptance",
        help="Accept only the target's choice, or any typical token (not lossless when sampling)",
        choices=("lossless", "typical"),
    )
    epsilon: float = share(
        0.09, label="Typical: bound", symbol="ε", help="Accept a token whose probability exceeds this"
    )
    delta: float = share(
        0.3, label="Typical: scale", symbol="δ", help="Scale of the entropy-dependent threshold, delta * exp(-H)"
    )

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "paper": {},
        "figure 2": {"tree": "cartesian", "sizes": "2,3"},
        "best guesses only": {"tree": "given", "paths": "0;0,0;0,0,0;0,0,0,0;0,0,0,0,0"},
        "typical": {"acceptance": "typical"},
        "SmolLM2 on a CPU": {"size": 6},
        "pocket on a CPU": {"size": 4},
    }

    @property
    def nodes(self) -> int:
        """Count the nodes of the largest step."""
        return self.size + 1 if self.tree == "sparse" else len(self.written.parents)

    @property
    def written(self) -> TreeShape:
        """Return the tree that the settings spell out."""
        return cartesian(sizes_in(self.sizes)) if self.tree == "cartesian" else given(self.paths)

    @property
    def ranks(self) -> int:
        """Return how many guesses of a head the tree can hold."""
        return min(RANKS, self.size) if self.tree == "sparse" else max(self.written.ranks) + 1

    @property
    def typical(self) -> tuple[float, float] | None:
        """Return epsilon and delta if typical tokens are accepted."""
        return (self.epsilon, self.delta) if self.acceptance == "typical" else None

    def check(self) -> None:
        """Refuse texts that are not trees, whether they are used or not."""
        sizes_in(self.sizes)
        given(self.paths)


class Medusa(Method):
    """Several heads guess several tokens ahead."""

    name = "medusa"
    label = "Medusa"
    paper = "Cai et al. 2024, arXiv 2401.10774"
    Params = MedusaParams
    Panel = MedusaPanel
    needs = frozenset({"hidden", "medusa"})

    def __init__(self, context: Context, params: MedusaParams) -> None:
        heads: Guesser = context.parts["medusa"]
        self._context, self._params, self._heads = context, params, heads
        self._count = min(params.heads or heads.count, heads.count)
        sparse = params.tree == "sparse"
        self._shape = default(self._count, heads.accuracies, params.size) if sparse else params.written  # L1
        self._ranks = max(self._shape.ranks, default=0) + 1
        self._lists = list[Sequence[int]]()  # by head, its likeliest tokens
        self._guesses = list[tuple[int, int]]()  # head and rank of every guess
        self._verdict = Verdict((), (), ())  # L2

    def propose(self) -> Draft:
        """Propose the root and the heads' guesses, combined as in the tree."""
        context, guesses = self._context, self._verdict.guesses
        tree, nodes, deepest = Builder(context.text[-1]), {0: 0}, min(self._count, context.room)
        ranks = len(guesses) // self._heads.count  # a small vocabulary has fewer tokens than requested
        heads = range(self._count if ranks and deepest > 0 else 0)
        self._lists, self._guesses = [guesses[head * ranks : (head + 1) * ranks] for head in heads], []
        for node, parent, head, rank in self._shape.rows:
            if parent in nodes and head <= deepest and rank < ranks and len(tree) < context.largest_step:
                token = self._lists[head - 1][rank]  # L4
                child = tree.add(token, nodes[parent], f"medusa:{head},{rank}")
                self._guesses.append((head, rank))
                if token not in context.end_tokens:
                    nodes[node] = child
        return tree.draft()  # L5

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Keep the verdict, which holds the next step's guesses."""
        self._verdict = verdict  # L6

    def guess(self, hidden: torch.Tensor) -> torch.Tensor:  # (H,) -> (K, ranks)
        """Return every head's likeliest tokens."""
        return self._heads.top(hidden, self._ranks)  # L3

    @property
    def guess_key(self) -> Hashable:
        """Return the heads, and how many tokens of each are listed."""
        return self._heads, self._ranks

    def panel(self) -> MedusaPanel:
        """Return head, rank and fate of every guess, and the rank of each emitted token in its head's list."""
        params, verdict = self._params, self._verdict
        nodes: JSON = [[*guess, node in verdict.path] for node, guess in enumerate(self._guesses, start=1)]
        pairs = zip(self._lists, verdict.emitted, strict=False)
        hits = [guesses.index(token) if token in guesses else None for guesses, token in pairs]
        panel: MedusaPanel = {"tree": params.tree, "heads": self._count, "nodes": nodes, "hits": hits}
        if params.typical is not None and not self._context.sampler.sampling.greedy:
            panel["typical"] = {"epsilon": params.epsilon, "delta": params.delta}
        return panel
