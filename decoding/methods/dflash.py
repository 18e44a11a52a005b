"""DFlash (Chen et al., 2026, arXiv 2602.06036): a drafter that fills a block of mask tokens in one pass.

A small drafter reads the hidden states of several layers of the target, and guesses all tokens of a step at once.

Algorithm
  L1  while the target reads, keep what enters some layers of it; fc and a norm make one feature of these states
  L2  let every layer of the drafter make a key and a value of each new feature
  L3  read the root and B - 1 mask tokens in one pass: each sees all features and the whole block
  L4  each mask's logits are the distribution q of the token in its place, whatever the tokens before it
  L5  a chain: take the likeliest token of every place, or draw it from q
  L6  a tree: take the k likeliest tokens of every place after each of the k guesses with the largest products of
      probabilities, and keep the m guesses with the largest products (DDTree, Ringel et al., 2026, arXiv 2604.12989)
  L7  the target reads all of it in one pass; the engine accepts

  symbol  meaning
  B       rows of a block: the root and the mask tokens
  gamma   tokens of a chain, or levels of a tree; at most as many as the drafter's block has
  k, m    a tree's guesses after a token, and its guesses that the target reads
  p, q    the target's and the drafter's distribution

Differs from the paper
  Guesses that are not drawn are point masses to the engine: a sampled text draws from p at every node and goes on where
  a guess holds that token. Drawn guesses come from q, shaped as p is. They are accepted less often, since no token of a
  block knows which one was drawn before it. DDTree keeps the m likeliest paths of all; here a level expands only its k
  likeliest guesses, which for k >= m is the same. A block shorter than the trained one is filled where less text may
  still be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..drafting.chain import Chain, OpenChain, Read
from ..drafting.guess_tree import GuessTree, OpenTree, TreeBounds
from ..params import Params, param, share
from ..queued import Proposal
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import DFlashPanel, FeatureStop, feature_panel


@dataclass(frozen=True, slots=True)
class DFlashParams(Params):
    """The form of the draft, and how much is drafted."""

    form: str = param(
        "chain",
        label="Form",
        help="Draft a chain of the likeliest tokens, a chain drawn from q, or a tree",
        choices=("chain", "drawn", "tree"),
    )
    gamma: int = param(
        15, label="Length", symbol="γ", help="Most tokens of a chain, or levels of a tree, per step", min=1, max=255
    )
    m: int = param(32, label="Tree: size", symbol="m", help="Most guesses that the target reads", min=1, max=512)
    k: int = param(
        8, label="Tree: width", symbol="k", help="Guesses per node, and nodes expanded per level", min=1, max=64
    )
    threshold: float = share(0.0, label="Threshold", help="Drop guesses whose path probability is below this")

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "paper": {},
        "DDTree": {"form": "tree"},
        "SmolLM2 on a CPU": {"gamma": 3, "threshold": 0.2},
        "pocket on a CPU": {"form": "tree", "gamma": 7, "m": 7, "k": 3, "threshold": 0.05},
    }

    @property
    def nodes(self) -> int:
        """Count the nodes of the largest step."""
        return self.m + 1 if self.form == "tree" else 0

    @property
    def rows(self) -> int:
        """Count the rows of the block."""
        return self.gamma + 1


class DFlashMethod(Method):
    """A drafter fills a block of mask tokens at once."""

    name = "dflash"
    label = "DFlash"
    paper = "Chen et al. 2026, arXiv 2602.06036"
    Params = DFlashParams
    Panel = DFlashPanel
    needs = frozenset({"features", "dflash"})

    def __init__(self, context: Context, params: DFlashParams) -> None:
        assert context.features is not None
        self._context, self._params = context, params
        self._drafter = context.features.block(context, context.parts["dflash"])  # L1
        self._chain, self._tree = Chain(), GuessTree(context.end_tokens)
        self._stopped: FeatureStop = ""
        self._count, self._unsayable = 0, list[int]()

    def propose(self) -> Proposal:
        """Propose the root and the drafter's guesses after it."""
        context, params, drafter = self._context, self._params, self._drafter
        self._chain, self._tree = Chain(), GuessTree(context.end_tokens)
        waiting: FeatureStop = "interrupted" if context.interrupted() else "start"
        self._stopped = waiting if not drafter.ready else "budget" if context.room < 1 else ""
        if self._stopped:
            return Builder(context.text[-1]).draft()
        count = self._count = min(params.gamma, context.room, drafter.guesses)
        drafter.begin(count)  # L3: at the first look at a distribution
        if params.form == "drawn":
            return drafter.propose(self._chain, count, self._draw, True)  # L7
        k, most = (params.k, min(params.m, context.largest_step - 1)) if params.form == "tree" else (1, count)
        bounds = TreeBounds(k, count, most, params.threshold, params.threshold)
        return drafter.propose_tree(self._tree, bounds, self._grow)  # L7

    def _draw(self, chain: OpenChain, read: Read) -> None:
        """Draw a chain."""
        for _ in range(self._count):
            chain.draw(read(chain.tokens))  # L4, L5
            if chain.ended or chain.product < self._params.threshold:
                break

    def _grow(self, tree: OpenTree, bounds: TreeBounds) -> None:
        """Grow a tree level by level, or a chain, which is a tree of width 1."""
        tree.branch(bounds.k)  # L4: after the root
        for _ in range(bounds.depth - 1):
            if not tree.descend(bounds.k, bounds.expand):
                break
            tree.branch(bounds.k)  # L6
        tree.keep(bounds.m, bounds.threshold)

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Let the drafter read the target's features of the emitted tokens."""
        drafter = self._drafter
        drafter.forget()
        chosen = {*verdict.argmax, *verdict.emitted}
        self._unsayable = [] if drafter.sayable is None else sorted(chosen - drafter.sayable)
        if self._context.remaining > 1:  # reading a prompt here counts as time of the step that has read it
            drafter.catch_up()  # L2

    def panel(self) -> DFlashPanel:
        """Return the layers that the drafter reads, its block and confidence, and the tokens that it cannot draft."""
        drafter = self._drafter
        return {
            **feature_panel(drafter, self._chain, self._tree, self._stopped),
            "block": drafter.guesses,
            "anchored": drafter.anchored,
            "unsayable": self._unsayable,
        }
