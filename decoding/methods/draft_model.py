"""Speculative decoding with a draft model (Leviathan et al., arXiv 2211.17192; Chen et al., arXiv 2302.01318).

A small model writes a few tokens ahead; the target reads them all in one pass and keeps those it agrees with.

Algorithm
  L1  let the drafter read what was committed since its last turn
  L2  let it write gamma tokens one by one, each drawn from its own distribution q
  L3  stop early when it is unsure: the probability of its likeliest token is below the threshold, or the text ends
  L4  the target reads the chain: one pass gives p at every token, and one more for the token after the last
  L5  the engine tests the tokens in order, and accepts x with probability min(1, p(x)/q(x)) (`accept.sampled`)
  L6  at the first rejection the next token is drawn from norm(max(0, p - q)) instead (`accept.residual`)
  L7  after full acceptance one more token is drawn from p (`accept.sampled`)
  L8  forget the rejected tokens in the drafter's cache; after full acceptance its last token is still unread

  symbol  meaning
  gamma   tokens drafted per step
  p, q    the target's and the drafter's distribution, both after temperature and filters

Differs from the paper
  The early stop (L3) is not in it. The token that the drafter was unsure about is kept: it has been paid for. Whether
  to stop depends on the draft alone, so the output's distribution is unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..drafting.chain import Chain, OpenChain, Read
from ..params import Params, param, share
from ..queued import Proposal
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import DraftModelPanel


@dataclass(frozen=True, slots=True)
class DraftModelParams(Params):
    """How far the drafter writes ahead."""

    gamma: int = param(5, label="Draft length", symbol="γ", help="Tokens drafted per step", min=1, max=64)
    threshold: float = share(
        0.0, label="Confidence threshold", help="Stop drafting after a token with less confidence (0: never)"
    )

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {"SmolLM2 on a CPU": {"gamma": 4, "threshold": 0.3}}


class DraftModel(Method):
    """A small model drafts ahead of the target."""

    name = "draft_model"
    label = "Draft model"
    paper = "Leviathan et al. 2023, arXiv 2211.17192; Chen et al. 2023, arXiv 2302.01318"
    Params = DraftModelParams
    Panel = DraftModelPanel
    needs = frozenset({"draft_model"})

    def __init__(self, context: Context, params: DraftModelParams) -> None:
        assert context.draft is not None
        self._context, self._params, self._drafter = context, params, context.draft
        self._chain, self._gamma = Chain(), 0

    def propose(self) -> Proposal:
        """Propose the root and the drafter's chain."""
        self._chain, self._gamma = Chain(), min(self._params.gamma, self._context.room)
        # The engine runs L4, L5, L6 and L7 on this proposal.
        return self._drafter.propose(self._chain, self._gamma, self._draft, self._params.threshold > 0.0)

    def _draft(self, chain: OpenChain, read: Read) -> None:
        """Draft token by token."""
        for _ in range(self._gamma):
            logits = read(chain.tokens)  # L1
            chain.draw(logits)  # L2
            if chain.ended or chain.sure < self._params.threshold:  # L3
                break

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Rewind the drafter's cache to the committed text."""
        self._drafter.forget()  # L8

    def panel(self) -> DraftModelPanel:
        """Return the drafter's confidence at every token it wrote; empty without a threshold."""
        return {"confidence": self._chain.confidence, "threshold": self._params.threshold}
