"""Kangaroo: self-speculation by double early exiting (Liu et al., 2024, arXiv 2404.18911).

The target's own first layers and a small adapter draft ahead until they are unsure; the other layers then read it all
in one pass, starting from the hidden states that the first ones have computed.

Algorithm
  L1  run the first l layers on the last token c; what comes out is the first entry of E
  L2  let the adapter read what it lacks of the text, then E's newest entry; the target's own head makes logits of it
  L3  they are the distribution of the next token: draft one by it
  L4  run the first l layers on the draft as well: one more entry of E, also for the last draft
  L5  stop after gamma drafts, at an end of text, or if the largest probability was below eta; else continue at L2
  L6  the layers after l read all of E in one pass; the engine accepts, and one more token comes for free
  L7  the adapter forgets what was rejected; after full acceptance it lacks the last draft, which L2 reads, and
      where it lacks more, as after the prompt, it reads that at once

  symbol  meaning
  gamma   most tokens drafted per step
  eta     confidence below which drafting stops; 0 drafts gamma tokens every time, the paper's fixed steps
  l       layers before the exit: a property of the adapter
  p, q    the target's and the drafter's distribution

Differs from the paper
  The paper drafts greedily. Here sampled text has sampled drafts: q is shaped as p is, and the engine accepts a
  draft x with probability min(1, p(x)/q(x)). Confidence is the head's, before temperature and filters. Whether to
  stop depends on the draft alone, so the output's distribution is unchanged. The paper stops at eta itself as well,
  the reference code below it only, as here. In both the draft that was unsure is kept: it has been paid for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..drafting.chain import Adapt, Chain, Enter, OpenChain
from ..params import Params, param, share
from ..queued import Proposal
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import KangarooPanel, KangarooStop


@dataclass(frozen=True, slots=True)
class KangarooParams(Params):
    """How far the first layers draft ahead."""

    gamma: int = param(6, label="Draft length", symbol="γ", help="Most tokens drafted per step", min=1, max=64)
    eta: float = share(
        0.6,
        label="Confidence threshold",
        symbol="η",
        help="Stop drafting after a token with less confidence (0: never)",
    )

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {"SmolLM2 on a CPU": {"gamma": 3, "eta": 0.4}}


class Kangaroo(Method):
    """The target's first layers and an adapter draft ahead."""

    name = "kangaroo"
    label = "Kangaroo"
    paper = "Liu et al. 2024, arXiv 2404.18911"
    Params = KangarooParams
    Panel = KangarooPanel
    needs = frozenset({"early_exit", "kangaroo"})

    def __init__(self, context: Context, params: KangarooParams) -> None:
        assert context.target is not None
        self._context, self._params, self._drafter = context, params, context.target
        capacity = context.prompt_length + context.max_new_tokens
        self._drafter.attach(context.parts["kangaroo"], capacity, context.largest_step)
        self._chain, self._count = Chain(), 0  # the drafts, and their largest number
        self._hindrance: KangarooStop = ""  # why nothing can be drafted

    def propose(self) -> Proposal:
        """Propose the root and a chain drafted by the first layers, with the hidden states after them."""
        context, drafter = self._context, self._drafter
        self._chain, self._count = Chain(), min(self._params.gamma, context.room)
        self._hindrance = "start" if not drafter.ready else "budget" if self._count < 1 else ""
        if self._hindrance or not drafter.catch_up():
            return Builder(context.text[-1]).draft()
        return drafter.propose(self._chain, self._count, self._draft, self._params.eta > 0.0)  # L6

    def _draft(self, chain: OpenChain, enter: Enter, adapt: Adapt) -> None:
        """Draft token by token; the outputs of the first layers are E."""
        state = enter(chain.tokens)  # L1
        for _ in range(self._count):
            logits = adapt(state)  # L2
            chain.draw(logits)  # L3
            state = enter(chain.tokens)  # L4
            if chain.ended or chain.sure < self._params.eta:  # L5
                break

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Rewind the adapter to the committed text, and let it catch up."""
        self._drafter.forget()  # L7
        if self._context.remaining > 1:  # reading a prompt here counts as time of the step that has read it
            self._drafter.catch_up()

    def panel(self) -> KangarooPanel:
        """Return the drafter's confidence at every token it wrote (empty if eta is 0), and why it stopped."""
        return {
            "exit_layer": self._drafter.layer,
            "eta": self._params.eta,
            "confidence": self._chain.confidence,
            "stopped": self._hindrance or self._stopped(),
        }

    def _stopped(self) -> KangarooStop:
        """Return why drafting stopped after the last token."""
        chain = self._chain
        if chain.tokens and chain.tokens[-1] in self._context.end_tokens:
            return "end"
        if len(chain) == self._count:
            return "gamma" if self._count == self._params.gamma else "budget"
        return "unsure" if chain.confidence and chain.confidence[-1] < self._params.eta else "interrupted"
