"""Medusa (Cai et al., 2024, arXiv 2401.10774).

Small heads on the target's last hidden state guess the next tokens all at once; the likeliest guesses are combined
into a tree, which the target reads in one pass.

Algorithm
  L1  choose a tree of paths (i1, ..., ik), each with its prefixes: guess i1 of head 1, ..., guess ik of head k. A
      sparse one grows by the neighbour that is likeliest to be accepted: the product of the accuracies on its path
  L2  the first step is the root alone: there is no hidden state yet
  L3  from h, with which the target chose the root, every head k lists its likeliest tokens for the k-th place behind it
  L4  node (i1, ..., ik) gets token ik of head k's list; what stands above it does not matter to the head
  L5  the target reads the tree in one pass; the engine accepts a path that is the target's own choice (lossless), or
      the longest whose every token x is typical: p(x) > min(epsilon, delta exp(-H(p)))
  L6  h is now the hidden state at the last accepted node

  symbol          meaning
  K               heads
  s               guesses per head in a Cartesian tree: s1 + s1 s2 + ... nodes
  epsilon, delta  bounds of typical acceptance
  p, H(p)         the target's distribution after temperature and filters, and its entropy

Differs from the paper
  Under typical acceptance too, the token behind the accepted path is drawn from p: the paper takes the likeliest.
  A grown tree leaves out guesses that were never right; a tree that is deeper than the heads is cut there.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypedDict, cast

from ..params import Params, param
from ..parts.medusa_tree import RANKS, Tree, default, given, product
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method

if TYPE_CHECKING:
    import torch

    from ..parts.heads import Guesser


@dataclass(frozen=True, slots=True)
class MedusaParams(Params):
    """The tree, and what is accepted of it."""

    tree: str = param(
        "sparse",
        label="Tree",
        help="Grown from the heads' accuracies, a full product, or one of your own",
        choices=("sparse", "cartesian", "given"),
    )
    size: int = param(63, label="Sparse tree", help="Guesses of the sparse tree, at most", min=1, max=256)
    sizes: str = param("4,3,2", label="Cartesian tree", symbol="s", help="Guesses of head 1, of head 2, ...")
    paths: str = param("0;1;0,0", label="Given tree", help="Paths of ranks, as text, JSON or published lists")
    heads: int = param(0, label="Heads used", symbol="K", help="Heads used at most; 0 uses all", min=0, max=64)
    acceptance: str = param(
        "lossless",
        label="Acceptance",
        help="Typical acceptance takes more guesses, but changes the distribution of sampled text",
        choices=("lossless", "typical"),
    )
    epsilon: float = param(0.09, label="Typical: bound", symbol="ε", help="A token above it passes", min=0.0, max=1.0)
    delta: float = param(0.3, label="Typical: share", symbol="δ", help="Or above this times exp(-H)", min=0.0, max=1.0)

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
        """Nodes of the largest step."""
        return self.size + 1 if self.tree == "sparse" else len(self.written.parents)

    @property
    def written(self) -> Tree:
        """The tree that the settings spell out."""
        return product(self.sizes) if self.tree == "cartesian" else given(self.paths)

    @property
    def ranks(self) -> int:
        """Guesses of a head that the tree can hold."""
        return min(RANKS, self.size) if self.tree == "sparse" else max(self.written.ranks) + 1

    @property
    def typical(self) -> tuple[float, float] | None:
        """epsilon and delta where typical tokens are accepted."""
        return (self.epsilon, self.delta) if self.acceptance == "typical" else None

    def check(self) -> None:
        """Both texts must be trees, whichever is used."""
        product(self.sizes)
        given(self.paths)


class MedusaTypical(TypedDict, total=False):
    """The bounds of typical acceptance, where it decides."""

    epsilon: float
    delta: float


class MedusaPanel(TypedDict, total=False):
    """The heads' guesses and their fate."""

    tree: Literal["sparse", "cartesian", "given"]
    heads: int  # K
    nodes: list[tuple[int, int, bool]]  # of every guess: its head, its rank there, and whether it was accepted
    hits: list[int | None]  # of every token written that a head guessed at: its rank there, None where it had none
    typical: MedusaTypical


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
        self._tree = default(self._count, heads.accuracies, params.size) if sparse else params.written  # L1
        self._ranks = max(self._tree.ranks, default=0) + 1
        self._said: tuple[int, ...] = ()  # L2
        self._guesses: list[list[int]] = []  # of every head, the best first
        self._nodes: list[list[JSON]] = []  # head, rank and whether it was accepted, of every guess of the step
        self._hits: list[int | None] = []

    def propose(self) -> Draft:
        """The root and the heads' guesses, combined as the tree says."""
        context, shape = self._context, self._tree
        tree = Builder(context.text[-1])
        self._guesses, self._nodes, self._hits = [], [], []
        deepest = min(self._count, context.room)
        if not self._said or deepest < 1:
            return tree.draft()
        ranks = len(self._said) // self._heads.count  # a small vocabulary has fewer tokens than were asked for
        self._guesses = [[*self._said[head * ranks : (head + 1) * ranks]] for head in range(self._count)]
        place = {0: 0}  # node of the shape -> node of the draft, where guesses may hang below it
        for node, (parent, head, rank) in enumerate(zip(shape.parents, shape.depths, shape.ranks, strict=True)):
            if parent not in place or head > deepest or len(tree) == context.largest_step:
                continue
            if rank < len(self._guesses[head - 1]):  # a small vocabulary has fewer tokens than the tree has ranks
                token = self._guesses[head - 1][rank]  # L4
                new = tree.add(token, place[parent], f"medusa:{head},{rank}")
                self._nodes.append([head, rank, False])
                if token not in context.end_tokens:
                    place[node] = new
        return tree.draft()  # L5

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Keep the next guesses, and note which of the last ones came true."""
        self._said = verdict.guesses  # L6
        for node in verdict.path[1:]:
            self._nodes[node - 1][2] = True
        pairs = zip(self._guesses, verdict.emitted, strict=False)
        self._hits = [guesses.index(token) if token in guesses else None for guesses, token in pairs]

    def guess(self, hidden: torch.Tensor) -> torch.Tensor:  # (H,) -> (K, ranks)
        """Every head's likeliest tokens."""
        return self._heads.top(hidden, self._ranks)  # L3

    @property
    def guess_key(self) -> Hashable:
        """The heads, and how many tokens of each."""
        return self._heads, self._ranks

    def panel(self) -> MedusaPanel:
        """Head, rank and fate of every guess; and for every token written the rank at which its head had it, if so."""
        params = self._params
        tree = cast(Literal["sparse", "cartesian", "given"], params.tree)
        nodes: JSON = self._nodes
        panel: MedusaPanel = {"tree": tree, "heads": self._count, "nodes": nodes, "hits": self._hits}
        if params.typical is not None and not self._context.sampler.sampling.greedy:
            panel["typical"] = {"epsilon": params.epsilon, "delta": params.delta}
        return panel
