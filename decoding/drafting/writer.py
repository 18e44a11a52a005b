"""What writes a chain of tokens ahead of a text, one by one: a draft model, or the target's own first layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch

from ..model.download import waits
from ..model.upload import upload
from ..outlook import largest_probability, surest_of_few
from ..queued import Proposal, QueuedDraft
from ..ranking import checked, likeliest, likeliest_rows
from ..sampling import draw, drawn_rows
from ..types import Draft
from .chain import Chain

if TYPE_CHECKING:
    from ..methods.base import Context
    from ..model.session import Tokens
    from ..parts.draft_vocabulary import DraftVocabulary

CPU = torch.device("cpu")


class Writer(ABC):
    """What writes a chain ahead of the text, token by token."""

    kind: ClassVar[str]  # of its tokens' sources

    def __init__(self, context: Context, device: torch.device = CPU) -> None:
        # Not the context itself, which knows the drafter: a ring would keep the caches when the run is dropped.
        self.text, self.sampler, self.end_tokens = context.text, context.sampler, context.end_tokens
        self.interrupted, self.detailed = context.interrupted, context.detailed
        self.vocabulary: DraftVocabulary | None = None  # the tokens that its logits are over; None: all
        self._device = device

    @property
    def queues(self) -> bool:
        """Whether the device drafts on by itself, since the host would have to wait for every token."""
        return waits(self._device)

    @abstractmethod
    def next_logits(self, written: Tokens) -> torch.Tensor | None:
        """What follows the text and what was written behind it, not penalised; None if interrupted.

        (1, n) over the n tokens of its vocabulary.
        """

    def entry(self, written: Tokens) -> tuple[int, torch.Tensor] | None:
        """What the target goes on from, as in `Draft`, once a chain is written."""
        return None

    def draft(self, chain: Chain, count: int, stop: Callable[[], bool], confidence: bool) -> Proposal:
        """Write up to `count` tokens into an empty chain, until `stop` says so of the chain, or the run is interrupted.

        `confidence` asks for the probability of the likeliest token, before temperature and filters. On a device all
        tokens are written, and the host finds out later where it would have stopped.
        """
        if count > 0 and self.queues:
            return self._queue(chain, count, stop, confidence)
        while len(chain) < count and (logits := self.next_logits(chain.tokens)) is not None:
            chain.add(*self._choose(logits, chain.tokens, confidence))
            if stop():
                break
        self._shape(chain)
        draft = chain.draft(chain.tree(self.text[-1], self.kind))
        return replace(draft, entry=self.entry(chain.tokens)) if len(chain) else draft

    def _queue(self, chain: Chain, count: int, stop: Callable[[], bool], confidence: bool) -> Proposal:
        """Have the device write the chain."""
        draws, greedy, device = self.sampler.draws, self.sampler.sampling.greedy, self._device
        uniforms = upload(torch.tensor([] if greedy else draws.ahead(count), dtype=torch.float64), device)
        written = torch.empty(0, dtype=torch.long, device=device)
        faults, sures, qs = list[torch.Tensor](), list[torch.Tensor](), list[torch.Tensor | None]()
        while len(qs) < count and (logits := self.next_logits(written)) is not None:
            sures += [largest_probability(logits[0])[None]] if confidence else []
            logits = self.sampler.penalise_behind(self.widen(logits), written)
            q = None if greedy and not self.detailed else self.sampler.probabilities(logits)
            here = uniforms[len(qs) : len(qs) + 1]
            token, fault = likeliest_rows(logits) if greedy or q is None else drawn_rows(q, here)
            written = torch.cat((written, token))
            faults.append(fault)
            qs.append(None if q is None else q[0])

        def finish(found: Sequence[Sequence[float]]) -> Draft:
            tokens, spoilt, *sure = found
            for i, (token, q) in enumerate(zip(checked(tokens, spoilt), qs, strict=True)):
                chain.add(token, q, sure[0][i] if sure else None)
                if stop():
                    break
            draws.skip(0 if greedy else len(chain))
            return chain.draft(chain.tree(self.text[-1], self.kind))

        root = upload(torch.tensor(self.text[-1:]), device)
        ids, parents = torch.cat((root, written)), tuple(range(-1, len(qs)))
        if not qs:
            return chain.draft(chain.tree(self.text[-1], self.kind))
        numbers = written, torch.cat(faults), *([torch.cat(sures)] if confidence else [])
        return QueuedDraft(ids, parents, (None, *qs), numbers, finish, self.entry(written))

    def widen(self, logits: torch.Tensor) -> torch.Tensor:  # (..., n) -> (..., V)
        """Logits over the target's vocabulary."""
        return logits if self.vocabulary is None else self.vocabulary.widen(logits)

    def _choose(
        self, logits: torch.Tensor, written: Sequence[int], confidence: bool
    ) -> tuple[int, torch.Tensor | None, float | None]:  # (1, n)
        """A draw from q or, when greedy, the likeliest token; q, where anybody asks for it; and the confidence.

        Of a greedy token the logits stand for q until the chain is written.
        """
        sampler = self.sampler
        if sampler.plain:  # then no logits are needed of tokens that it cannot say
            if confidence:
                [place], [sure] = surest_of_few(logits)
            else:
                [place], sure = likeliest(logits), None
            token = place if self.vocabulary is None else self.vocabulary.listed[place]
            return token, logits[0] if self.detailed else None, sure
        sure = float(largest_probability(logits[0])) if confidence else None
        logits = sampler.penalise(self.widen(logits), [written])
        if sampler.sampling.greedy:
            return likeliest(logits)[0], logits[0] if self.detailed else None, sure
        q = sampler.probabilities(logits[0])
        return draw(q, sampler.draws.fresh()), q, sure

    def _shape(self, chain: Chain) -> None:
        """Make q of the logits that a greedy chain holds: no token waits for it, and all at once cost less."""
        if chain.q and self.detailed and self.sampler.sampling.greedy:
            logits = torch.stack([row for row in chain.q if row is not None])
            chain.q = [*self.sampler.probabilities(self.widen(logits) if self.sampler.plain else logits)]
