"""Kangaroo: self-speculation by double early exiting (Liu et al., 2024, arXiv 2404.18911).

The target's own first layers, with a small adapter behind them, write ahead until they are unsure; the other layers
then read it all in one pass, going on from the hidden states that the first ones have left there.

Algorithm
  L1  run the first l layers on the last token c; what comes out is the first entry of E
  L2  let the adapter read E's newest entry, and in front of it what it lacks of the text
  L3  its output, through the target's own head, is the law of the next token: draft one by it
  L4  run the first l layers on the draft as well: one more entry of E, also for the last draft
  L5  stop after gamma drafts, or where the law's largest probability was below eta; else go on at L2
  L6  the layers behind l read all of E in one pass; the engine accepts, and one more token comes for free
  L7  the adapter forgets what was rejected; after full acceptance it lacks the last draft, for L2 to read, and
      where it lacks more, as after the prompt, it reads that at once

  symbol  meaning
  gamma   most tokens drafted per step
  eta     confidence below which drafting stops; 0 drafts gamma tokens every time, the paper's fixed steps
  l       layers in front of the exit: a property of the adapter
  p, q    the target's and the drafter's law

Differs from the paper
  The paper drafts greedily. Here sampled text has sampled drafts: q is shaped as p is, and the engine accepts a
  draft x with probability min(1, p(x)/q(x)). Confidence is that of the law as it comes out of the head, and whether
  to stop depends on the draft alone, so the output's law is untouched. The paper stops at eta itself as well, the
  reference code below it only, as here. In both the draft that was unsure is kept: it has been paid for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypedDict

from ..params import Params, param
from ..tree import Builder
from ..types import Draft, Verdict
from .base import Context, Method

if TYPE_CHECKING:
    import torch

    from ..parts.adapter import Adapter

Stop = Literal["start", "budget", "interrupted", "end", "gamma", "unsure", ""]  # "start": the prompt comes first

_CHUNK = 256  # rows that the adapter reads at once of a long prompt


@dataclass(frozen=True, slots=True)
class KangarooParams(Params):
    """How far the shallow layers write ahead."""

    gamma: int = param(6, label="Tokens drafted", symbol="γ", help="Most tokens drafted per step", min=1, max=64)
    eta: float = param(
        0.6,
        label="Stop when unsure",
        symbol="η",
        help="Stop after a token less sure than this; 0 never stops",
        min=0.0,
        max=1.0,
    )


class KangarooPanel(TypedDict, total=False):
    """How far the first layers wrote."""

    exit_layer: int  # l
    eta: float
    confidence: list[float]  # the largest probability behind every token drafted; empty where eta is 0
    stopped: Stop


class Kangaroo(Method):
    """The target's first layers and an adapter write ahead."""

    name = "kangaroo"
    label = "Kangaroo"
    paper = "Liu et al. 2024, arXiv 2404.18911"
    Params = KangarooParams
    Panel = KangarooPanel
    needs = frozenset({"early_exit", "kangaroo"})

    def __init__(self, context: Context, params: KangarooParams) -> None:
        import torch

        assert context.target is not None
        adapter: Adapter = context.parts["kangaroo"]
        self._context, self._params, self._target, self._layer = context, params, context.target, adapter.layer
        self._adapter = adapter.open(context.prompt_length + context.max_new_tokens, context.largest_step)
        self._target.tap(self._layer)
        self._stored = 0  # tokens that the target had stored after the last step
        self._unread = torch.empty(0)  # (n, H) hidden states of the last of them, which the adapter has not read
        self._confidence: list[float] = []
        self._stopped: Stop = ""

    def propose(self) -> Draft:
        """The root and a chain written by the first layers, with the hidden states behind them."""
        context = self._context
        tree, self._confidence, self._stopped = Builder(context.text[-1]), [], "start"
        if not 0 < self._target.length == len(context.text) - 1:
            return tree.draft()  # the prompt has to be read first
        count = min(self._params.gamma, context.remaining - 1, context.largest_step - 1)
        if count < 1 or not self._catch_up():
            self._stopped = "budget" if count < 1 else "interrupted"
            return tree.draft()
        tokens, laws, hidden = self._write(count)
        tree.chain(tokens, [f"exit:{i}" for i in range(1, len(tokens) + 1)])
        return replace(tree.draft(q=(None, *laws)), entry=(self._layer, hidden))  # L6

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Make the adapter's text the committed one, and keep what it has yet to read."""
        import torch

        target, adapter = self._target, self._adapter
        fresh = target.tapped()
        anew = target.length - len(fresh) < self._stored  # the engine has read the text from its beginning again
        adapter.rewind(0 if anew else min(adapter.length, target.length))  # L7
        known = torch.cat((self._unread, fresh)) if len(self._unread) else fresh
        self._unread = known[len(known) - (target.length - adapter.length) :]
        self._stored = target.length
        if self._context.remaining > 1:  # the time that a prompt takes belongs to the step that has read it
            self._catch_up()

    def panel(self) -> KangarooPanel:
        """How sure the drafter was at every token it wrote, where eta asks for it, and why it stopped."""
        return {
            "exit_layer": self._layer,
            "eta": self._params.eta,
            "confidence": self._confidence,
            "stopped": self._stopped,
        }

    def _catch_up(self) -> bool:
        """Let the adapter read until one row at most is left, which it reads with the root; False if interrupted."""
        chunk = min(_CHUNK, self._adapter.largest_step)
        while len(self._unread) > 1 and not self._context.interrupted():
            self._adapter.read(self._unread[:chunk])[-1, 0].item()  # waits, or no clock would see it
            self._unread = self._unread[chunk:]
        return not self._context.interrupted()

    def _write(self, count: int) -> tuple[list[int], list[torch.Tensor | None], torch.Tensor]:
        """Up to `count` tokens, the laws behind them, and the hidden states of the root and of all of them."""
        import torch

        from ..drafting.drafter import next_token

        context, sampler, eta = self._context, self._context.sampler, self._params.eta
        tokens, laws = list[int](), list[torch.Tensor | None]()
        entries = [self._target.enter(context.text[-1:], self._layer)]  # L1
        rows = torch.cat((self._unread, entries[0])) if len(self._unread) else entries[0]
        self._unread = rows[:0]
        while True:
            raw = self._adapter.logits(self._adapter.read(rows)[-1])  # (V,)  L2
            sure = torch.softmax(raw.float(), -1).max() if eta else None  # queued first: it is there when the token is
            logits = sampler.penalise(raw[None], [tokens])
            token, q = next_token(context, logits)  # L3
            tokens.append(token)
            laws.append(q)
            self._confidence += [] if sure is None else [round(float(sure), 6)]
            rows = self._target.enter(tokens[-1:], self._layer, len(tokens))  # L4
            entries.append(rows)
            if self._stop(tokens, count):  # L5
                return tokens, laws, torch.cat(entries)

    def _stop(self, tokens: list[int], count: int) -> bool:
        """Whether to stop behind these drafts; notes why."""
        reasons: dict[Stop, bool] = {
            "end": tokens[-1] in self._context.end_tokens,
            "gamma": len(tokens) == self._params.gamma,
            "budget": len(tokens) == count,
            "unsure": bool(self._confidence) and self._confidence[-1] < self._params.eta,
            "interrupted": self._context.interrupted(),
        }
        self._stopped = next((reason for reason, holds in reasons.items() if holds), "")
        return bool(self._stopped)
