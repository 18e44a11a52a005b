"""EAGLE-3 (Li et al., 2025, arXiv 2503.01840), with the dynamic trees of EAGLE-2 (Li et al., 2024, arXiv 2406.16858).

A small drafter reads the hidden states of three layers of the target, and drafts from there on its own.

Algorithm
  L1  while the target reads, keep what enters a low, a middle and a high layer of it; fc makes one feature of the three
  L2  let the drafter read the feature of every token of the text together with the embedding of the next token:
      features that it had made itself are replaced by the target's
  L3  its logits after the last row are the distribution of the next token; its output is that token's feature
  L4  a chain: draw a token from that distribution, read it with that feature, and repeat, gamma times
  L5  a tree: take the k likeliest tokens after each of the k guesses with the largest products of probabilities, and
      read these with the features of their parents, level by level
  L6  keep the m guesses with the largest products: their parents are kept too, since products fall along a path
  L7  the target reads all of it in one pass; the engine accepts

  symbol  meaning
  k       guesses after a token, and guesses of a level that are expanded
  m       guesses that the target reads
  gamma   tokens of a chain
  p, q    the target's and the drafter's distribution

Differs from the paper
  The guesses of a tree are not drawn, so to the engine they are point masses: a sampled text draws from p at every node
  and goes on where a guess holds that token. A chain is drawn from q, shaped as p is; a token outside the drafter's
  vocabulary has q = 0. A tree leaves out guesses whose product is below a threshold; a chain ends after one, as its
  tokens are drawn. A guess with a product below another bound (expand) is not expanded: it is worth a row of the
  target's pass, but no pass of the drafter.
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
from .panels import Eagle3Panel, FeatureStop, feature_panel


@dataclass(frozen=True, slots=True)
class Eagle3Params(Params):
    """The form of the draft, and how much is drafted."""

    form: str = param("tree", label="Form", help="Draft a tree or a chain", choices=("tree", "chain"))
    m: int = param(60, label="Tree: size", symbol="m", help="Most guesses that the target reads", min=1, max=512)
    k: int = param(
        10, label="Tree: width", symbol="k", help="Guesses per node, and nodes expanded per level", min=1, max=64
    )
    depth: int = param(6, label="Tree: depth", help="Number of levels", min=1, max=32)
    gamma: int = param(5, label="Chain: length", symbol="γ", help="Most tokens drafted per step", min=1, max=64)
    threshold: float = share(0.0, label="Threshold", help="Stop expanding when the path probability falls below this")
    expand: float = share(0.0, label="Tree: threshold", help="Expand no guess whose path probability is below this")

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "paper": {},
        "chain": {"form": "chain"},
        "SmolLM2 on a CPU": {"m": 5, "k": 4, "depth": 4, "threshold": 0.02, "expand": 0.3},
        "pocket on a CPU": {"form": "chain", "gamma": 8, "threshold": 0.3},
    }

    @property
    def nodes(self) -> int:
        """Count the nodes of the largest step."""
        return self.m + 1 if self.form == "tree" else 0

    @property
    def rows(self) -> int:
        """Count the guesses that the drafter reads in a step, at most."""
        return self.k * (self.depth - 1) if self.form == "tree" else self.gamma - 1


class Eagle3(Method):
    """A drafter reads the target's features."""

    name = "eagle3"
    label = "EAGLE-3"
    paper = "Li et al. 2025, arXiv 2503.01840"
    Params = Eagle3Params
    Panel = Eagle3Panel
    needs = frozenset({"features", "eagle"})

    def __init__(self, context: Context, params: Eagle3Params) -> None:
        assert context.features is not None
        self._context, self._params = context, params
        self._drafter = context.features.eagle(context, context.parts["eagle"], params.rows)  # L1
        self._chain, self._tree = Chain(), GuessTree(context.end_tokens)
        self._stopped: FeatureStop = ""
        self._measured: Eagle3Panel = {}

    def propose(self) -> Proposal:
        """Propose the root and the drafter's guesses after it."""
        context, params, drafter = self._context, self._params, self._drafter
        self._chain, self._tree = Chain(), GuessTree(context.end_tokens)
        waiting: FeatureStop = "interrupted" if context.interrupted() else "start"
        self._stopped = waiting if not drafter.ready else "budget" if context.room < 1 else ""
        if self._stopped:
            return Builder(context.text[-1]).draft()
        drafter.begin()
        if params.form == "chain":
            return drafter.propose(self._chain, min(params.gamma, context.room), self._draft, True)  # L7
        depth, most = min(params.depth, context.room), min(params.m, context.largest_step - 1)
        bounds = TreeBounds(params.k, depth, most, params.threshold, max(params.threshold, params.expand))
        return drafter.propose_tree(self._tree, bounds, self._grow)  # L7

    def _draft(self, chain: OpenChain, read: Read) -> None:
        """Draft a chain."""
        for _ in range(min(self._params.gamma, self._context.room)):
            logits = read(chain.tokens)  # L3
            chain.draw(logits)  # L4
            if chain.ended or chain.product < self._params.threshold:
                break

    def _grow(self, tree: OpenTree, bounds: TreeBounds) -> None:
        """Grow a tree level by level."""
        tree.branch(bounds.k)  # L3: after the root
        for _ in range(bounds.depth - 1):
            if not tree.descend(bounds.k, bounds.expand):
                break
            tree.branch(bounds.k)  # L5
        tree.keep(bounds.m, bounds.threshold)  # L6

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Let the drafter read the target's features of the emitted tokens, in place of its own."""
        self._drafter.forget()
        self._measured = self._measure(draft, verdict)
        if self._context.remaining > 1:  # reading a prompt here counts as time of the step that has read it
            self._drafter.catch_up()  # L2

    def _measure(self, draft: Draft, verdict: Verdict) -> Eagle3Panel:
        """Return the panel's entries that need the drafter's own features, before the target's replace them."""
        drafter, guesses = self._drafter, [*self._tree.best] or [*range(len(self._chain))]
        chosen = {*verdict.argmax, *verdict.emitted}
        panel: Eagle3Panel = {"unsayable": [] if drafter.sayable is None else sorted(chosen - drafter.sayable)}
        if self._context.detailed and len(draft.tokens) > 1:
            # The last guess of a chain is read on a device, but not on a CPU.
            read = verdict.path[1 : len(self._chain) if self._chain.tokens else None]
            panel["agreement"] = drafter.agreement([guesses[node - 1] for node in read])
        return panel

    def panel(self) -> Eagle3Panel:
        """Return the layers that the drafter reads, its confidence, and the tokens that it cannot draft."""
        return {**feature_panel(self._drafter, self._chain, self._tree, self._stopped), **self._measured}
