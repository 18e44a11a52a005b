"""Speculative decoding with a draft model (Leviathan et al., arXiv 2211.17192; Chen et al., arXiv 2302.01318).

A small model writes a few tokens ahead; the target reads them all in one pass and keeps those it agrees with.

Algorithm
  L1  let the drafter read what was committed since its last turn
  L2  let it write gamma tokens one by one, each drawn from its own law q
  L3  stop early where it is unsure: its likeliest token has a probability below the threshold
  L4  the target reads the chain; the engine accepts each token x with probability min(1, p(x)/q(x))
  L5  forget the rejected tokens in the drafter's cache; after full acceptance its last token is still unread

  symbol  meaning
  gamma   tokens drafted per step
  p, q    the target's and the drafter's law, both after temperature and filters

Differs from the paper
  The early stop (L3) is not in it. The token that the drafter was unsure about is kept: it has been paid for, and
  whether to stop depends on the draft alone, so the output's law is untouched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from ..model.session import catch_up
from ..params import Params, param
from ..tree import Builder
from ..types import Draft, Verdict
from .base import Context, Method

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class DraftModelParams(Params):
    """How far the drafter writes ahead."""

    gamma: int = param(5, label="Tokens drafted", symbol="γ", help="Tokens the drafter writes per step", min=1, max=64)
    threshold: float = param(
        0.0,
        label="Stop when unsure",
        help="Stop after a token less sure than this; 0 never stops",
        min=0.0,
        max=1.0,
    )


class DraftModelPanel(TypedDict, total=False):
    """How sure the drafter was."""

    confidence: list[float]  # the probability of its likeliest token, for every token drafted; empty without threshold
    threshold: float


class DraftModel(Method):
    """A small model writes ahead."""

    name = "draft_model"
    label = "Draft model"
    paper = "Leviathan et al. 2023, arXiv 2211.17192; Chen et al. 2023, arXiv 2302.01318"
    Params = DraftModelParams
    Panel = DraftModelPanel
    needs = frozenset({"draft_model"})

    def __init__(self, context: Context, params: DraftModelParams) -> None:
        assert context.draft is not None
        self._context, self._params, self._session = context, params, context.draft
        self._confidence: list[float] = []

    def propose(self) -> Draft:
        """The root and a chain written by the drafter."""
        context = self._context
        self._confidence = []
        count = min(self._params.gamma, context.remaining - 1, context.largest_step - 1)
        tokens, laws = self._write(count) if count else ([], [])
        tree = Builder(context.text[-1])
        tree.chain(tokens, [f"draft:{i}" for i in range(1, len(tokens) + 1)])
        return tree.draft(q=(None, *laws))

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Make the drafter's cache hold the committed text and nothing else."""
        length = len(self._context.text)
        agreed = length - len(verdict.emitted) + len(verdict.path) - 1
        self._session.rewind(min(self._session.length, agreed, length - 1))  # L5

    def panel(self) -> DraftModelPanel:
        """How sure the drafter was of its likeliest token at every token it wrote, where a threshold asks for it."""
        return {"confidence": self._confidence, "threshold": self._params.threshold}

    def _write(self, count: int) -> tuple[list[int], list[torch.Tensor | None]]:
        """Up to `count` tokens and the laws behind them, which greedy drafting tells for the record alone."""
        import torch

        from ..drafting.drafter import next_token

        context, session, sampler = self._context, self._session, self._context.sampler
        room = session.largest_step // 2
        catch_up(session, context.text[session.length : -1], room, session.largest_step, context.interrupted)
        if context.interrupted():
            return [], []
        unread = context.text[session.length :]  # L1
        tokens, laws = list[int](), list[torch.Tensor | None]()
        while True:
            logits = session.read(unread, tuple(range(-1, len(unread) - 1)), skip=len(unread) - 1).logits
            session.commit(range(len(unread)))
            logits = sampler.penalise(logits, [tokens])
            token, q = next_token(context, logits)  # L2
            tokens.append(token)
            laws.append(q)
            if self._params.threshold > 0.0:
                self._confidence.append(round(float(torch.softmax(logits[0].float(), -1).max()), 6))
            unsure = bool(self._confidence) and self._confidence[-1] < self._params.threshold  # L3
            if len(tokens) == count or unsure or tokens[-1] in context.end_tokens or context.interrupted():
                return tokens, laws  # L4
            unread = tokens[-1:]
