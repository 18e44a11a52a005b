"""EAGLE-3 (Li et al., 2025, arXiv 2503.01840), with the dynamic trees of EAGLE-2 (Li et al., 2024, arXiv 2406.16858).

A small drafter reads what three layers of the target made of the text, and writes on from there by itself.

Algorithm
  L1  while the target reads, keep what enters a low, a middle and a high layer of it; fc makes one feature of the three
  L2  let the drafter read the feature of every token of the text together with the embedding of the token behind it:
      features that it had made itself are replaced by the target's
  L3  what it says behind the last row is the distribution of the next token; its output is that token's feature
  L4  a chain: take a token by that distribution, read it with that feature, and go on gamma times
  L5  a tree: take the k likeliest tokens behind each of the k guesses with the largest products of probabilities, and
      read these with the features behind their parents, level by level
  L6  keep the m guesses with the largest products: each stands behind kept ones, since products fall along a path
  L7  the target reads all of it in one pass; the engine accepts

  symbol  meaning
  k       guesses behind a token, and tokens of a level that are guessed behind
  m       guesses that the target reads
  gamma   tokens of a chain
  p, q    the target's and the drafter's distribution

Differs from the paper
  The guesses of a tree are not drawn, so to the engine they are point masses: a sampled text draws from p at every node
  and goes on where a guess holds that token. A chain is drawn from q, shaped as p is; a token outside the drafter's
  vocabulary has q = 0. What is below a product is left out of trees; a chain ends behind it, as its tokens are drawn.
  Behind guesses below another product (expand) a tree does not grow: they are worth a row of the target's, but no pass
  of the drafter's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import ClassVar, Literal, TypedDict

from ..drafting.chain import Chain, OpenChain, Read
from ..drafting.guess_tree import HostTree, OpenTree, TreeBounds
from ..params import Params, param
from ..queued import Proposal
from ..tree import Builder
from ..types import JSON, Draft, Token, Verdict
from .base import Context, Method

Stop = Literal["start", "budget", "interrupted", ""]  # "start": the prompt comes first


@dataclass(frozen=True, slots=True)
class Eagle3Params(Params):
    """The form of the draft, and how much is drafted."""

    form: str = param(
        "tree", label="Draft", help="A tree of the likeliest guesses, or a chain", choices=("tree", "chain")
    )
    m: int = param(60, label="Tree: guesses", help="Guesses of a tree that the target reads", min=1, max=512)
    k: int = param(10, label="Tree: branches", help="Guesses behind a token, and tokens read of a level", min=1, max=64)
    depth: int = param(6, label="Tree: depth", help="Guesses one behind the other", min=1, max=32)
    gamma: int = param(5, label="Chain: tokens", symbol="γ", help="Most tokens drafted per step", min=1, max=64)
    threshold: float = param(
        0.0, label="Stop when unsure", help="Nothing is guessed below this product of probabilities", min=0.0, max=1.0
    )
    expand: float = param(
        0.0,
        label="Tree: expand from",
        help="A guess with a smaller product gets no guesses behind it",
        min=0.0,
        max=1.0,
    )

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "paper": {},
        "chain": {"form": "chain"},
        "SmolLM2 on a CPU": {"m": 5, "k": 4, "depth": 4, "threshold": 0.02, "expand": 0.3},
        "pocket on a CPU": {"form": "chain", "gamma": 8, "threshold": 0.3},
    }

    @property
    def nodes(self) -> int:
        """Nodes of the largest step."""
        return self.m + 1 if self.form == "tree" else 0

    @property
    def rows(self) -> int:
        """Guesses that the drafter reads in a step, at most."""
        return self.k * (self.depth - 1) if self.form == "tree" else self.gamma - 1


class Eagle3Panel(TypedDict, total=False):
    """What the drafter read, and how sure it was."""

    layers: list[int]  # of the target, whose inputs it reads
    products: list[float]  # of every guess, the product of the probabilities on the way to it
    chances: list[float]  # of every guess, its probability behind its parent; in a chain, that of the likeliest token
    made: int  # guesses of the tree before the best of them were kept
    vocabulary: int | None  # tokens that the drafter can say; None: all
    unsayable: list[Token]  # tokens that the target chose or wrote in this step, which the drafter cannot say
    agreement: list[float]  # cosines of its own features and the target's: of the root, then of accepted guesses
    stopped: Stop  # why nothing was drafted


class Eagle3(Method):
    """A drafter on the target's features."""

    name = "eagle3"
    label = "EAGLE-3"
    paper = "Li et al. 2025, arXiv 2503.01840"
    Params = Eagle3Params
    Panel = Eagle3Panel
    needs = frozenset({"features", "eagle"})

    def __init__(self, context: Context, params: Eagle3Params) -> None:
        assert context.features is not None
        self._context, self._params, self._drafter = context, params, context.features
        self._drafter.attach(context.parts["eagle"], context.prompt_length + context.max_new_tokens, params.rows)  # L1
        self._chain, self._tree = Chain(), HostTree()
        self._stopped: Stop = ""
        self._measured: Eagle3Panel = {}

    def propose(self) -> Proposal:
        """Propose the root, and what the drafter guesses after it."""
        context, params, drafter = self._context, self._params, self._drafter
        self._chain, self._tree = Chain(), HostTree()
        waiting: Stop = "interrupted" if context.interrupted() else "start"
        self._stopped = waiting if not drafter.ready else "budget" if context.room < 1 else ""
        if self._stopped:
            return Builder(context.text[-1]).draft()
        drafter.begin()
        if params.form == "chain":
            return drafter.propose(self._chain, min(params.gamma, context.room), self._draft, True)  # L7
        return drafter.tree(self._bounds, self._grow, self._finish)  # L7

    def _draft(self, chain: OpenChain, read: Read) -> None:
        """Draft a chain."""
        for _ in range(min(self._params.gamma, self._context.room)):
            logits = read(chain.tokens)  # L3
            chain.draw(logits)  # L4
            if chain.ended or chain.product < self._params.threshold:
                break

    def _grow(self, tree: OpenTree) -> None:
        """Grow a tree level by level."""
        bounds = self._bounds
        tree.branch(bounds.k)  # L3: after the root
        for _ in range(bounds.depth - 1):
            if not tree.descend(bounds.k, max(bounds.least, bounds.expand)):
                break
            tree.branch(bounds.k)  # L5
        tree.keep(bounds.most, bounds.least)  # L6

    @property
    def _bounds(self) -> TreeBounds:
        """What a tree may be in this step."""
        context, params = self._context, self._params
        depth, most = min(params.depth, context.room), min(params.m, context.largest_step - 1)
        return TreeBounds(params.k, depth, most, params.threshold, params.expand)

    def _finish(self, tree: HostTree) -> Draft:
        """Make the draft of the guesses that are kept."""
        context, self._tree = self._context, tree
        builder, nodes = Builder(context.text[-1]), {-1: 0}
        for each, guess in tree.best.items():
            nodes[each] = builder.add(guess.token, nodes[guess.parent], f"branch:{guess.depth},{guess.rank}")
        # Of a sampled text the q of a point mass would be taken for a draw's.
        if not tree.best or not context.detailed or not context.sampler.sampling.greedy:
            return builder.draft()
        parents = [*dict.fromkeys(guess.parent for guess in tree.best.values())]
        q = dict(zip(parents, self._drafter.q(parents), strict=True))
        return builder.draft(q=(None, *(q[guess.parent] for guess in tree.best.values())))

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Let the drafter read the target's features of what was written, in place of its own."""
        drafter, guesses = self._drafter, [*self._tree.best] or [*range(len(self._chain))]
        drafter.forget()
        wanted = {*verdict.argmax, *verdict.emitted}
        self._measured = {"unsayable": [] if drafter.sayable is None else sorted(wanted - drafter.sayable)}
        if self._context.detailed and len(draft.tokens) > 1:
            # The last guess of a chain is read on a device, but not on a CPU.
            read = verdict.path[1 : len(self._chain) if self._chain.tokens else None]
            self._measured["agreement"] = drafter.agreement([guesses[node - 1] for node in read])
        if self._context.remaining > 1:  # the time that a prompt takes belongs to the step that has read it
            drafter.catch_up()  # L2

    def panel(self) -> Eagle3Panel:
        """Return what the drafter read, how sure it was, and what it cannot say."""
        best, chances, sayable = self._tree.best.values(), self._chain.confidence, self._drafter.sayable
        products = [guess.product for guess in best] or [*accumulate(chances, mul)]
        return {
            "layers": [*self._drafter.layers],
            "vocabulary": None if sayable is None else len(sayable),
            "stopped": self._stopped,
            "products": [round(product, 6) for product in products],
            "chances": [round(guess.chance, 6) for guess in best] or chances,
            "made": len(self._tree.guesses) or len(chances),
            **self._measured,
        }
