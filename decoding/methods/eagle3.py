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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul
from typing import ClassVar, Literal, TypedDict

from ..drafting.chain import Chain
from ..drafting.guess_tree import Form, Guess
from ..params import Params, param
from ..queued import Proposal
from ..tree import Builder
from ..types import JSON, Draft, Token, Verdict
from .base import Context, Method


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
    stopped: Literal["start", "budget", "interrupted", ""]  # why nothing was drafted


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
        self._panel: Eagle3Panel = {}
        self._chain = Chain()
        self._guesses: Sequence[int] = []  # the drafter's guess that every node of a tree is, behind the root

    def propose(self) -> Proposal:
        """The root, and what the drafter guesses behind it."""
        context, drafter, self._chain = self._context, self._drafter, Chain()
        known = drafter.known
        self._panel = {"layers": [*drafter.layers], "vocabulary": None if known is None else len(known), "stopped": ""}
        self._panel |= {"products": [], "chances": [], "made": 0}
        if not drafter.ready:
            self._panel["stopped"] = "interrupted" if context.interrupted() else "start"
        elif context.room < 1:
            self._panel["stopped"] = "budget"
        else:
            drafter.begin()
            if self._params.form == "tree":
                return self._tree()  # L7
            return drafter.draft(self._chain, min(self._params.gamma, context.room), self._stop, True)  # L3, L4
        return Builder(context.text[-1]).draft()

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Let the drafter read the target's features of what was written, in the place of its own."""
        drafter, known, guesses = self._drafter, self._drafter.known, self._guesses
        drafter.forget()
        if self._params.form == "chain":
            guesses, sure = [*range(len(self._chain))], self._chain.confidence
            products = [round(product, 6) for product in accumulate(sure, mul)]
            self._panel |= {"products": products, "chances": sure, "made": len(sure)}
        self._panel["unsayable"] = [] if known is None else sorted({*verdict.argmax, *verdict.emitted} - known)
        if self._context.detailed and len(draft.tokens) > 1:
            # Of a chain a device has read the last guess too, which a CPU has not.
            read = verdict.path[1:] if self._params.form == "tree" else verdict.path[1 : len(self._chain)]
            self._panel["agreement"] = drafter.agreement([guesses[node - 1] for node in read])
        if self._context.remaining > 1:  # the time that a prompt takes belongs to the step that has read it
            drafter.catch_up()  # L2

    def panel(self) -> Eagle3Panel:
        """What the drafter read, how sure it was, and what it cannot say."""
        return self._panel

    def _stop(self) -> bool:
        """Whether a chain ends behind its last token."""
        chain = self._chain
        return chain.tokens[-1] in self._context.end_tokens or prod(chain.confidence) < self._params.threshold

    def _tree(self) -> Proposal:
        """The likeliest guesses."""
        context, params = self._context, self._params
        depth, most = min(params.depth, context.room), min(params.m, context.largest_step - 1)
        form = Form(params.k, depth, most, params.threshold, params.expand)
        return self._drafter.tree(form, self._finish)  # L3, L5, L6

    def _finish(self, guesses: Sequence[Guess], kept: Sequence[int]) -> Draft:
        """The tree of the best guesses."""
        context, tree, place = self._context, Builder(self._context.text[-1]), {-1: 0}
        shown, self._guesses = [guesses[each] for each in kept], kept
        for each, guess in zip(kept, shown, strict=True):
            place[each] = tree.add(guess.token, place[guess.parent], f"branch:{guess.depth},{guess.rank}")
        self._panel |= {
            "products": [round(guess.product, 6) for guess in shown],
            "chances": [round(guess.chance, 6) for guess in shown],
            "made": len(guesses),
        }
        # Of a sampled text the q of a point mass would be taken for a draw's.
        if not shown or not context.detailed or not context.sampler.sampling.greedy:
            return tree.draft()
        behind = [*dict.fromkeys(guess.parent for guess in shown)]
        q = dict(zip(behind, self._drafter.q(behind), strict=True))
        return tree.draft(q=(None, *(q[guess.parent] for guess in shown)))
