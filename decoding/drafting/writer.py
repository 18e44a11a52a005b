"""What writes a chain of tokens ahead of a text, one by one: a draft model, or the target's own first layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch

from ..model.chain_pass import Ahead
from ..model.decoder_session import DecoderSession
from ..model.download import waits
from ..model.replays import Outbox, Replayed, Replays
from ..model.upload import upload
from ..outlook import largest_probability, surest_of_few
from ..queued import Proposal, QueuedDraft
from ..ranking import checked, likeliest, likeliest_rows
from ..sampling import draw, drawn_rows
from ..types import Draft
from .chain import Chain
from .text_so_far import TextSoFar

if TYPE_CHECKING:
    from ..model.captured import Outputs
    from ..model.draft_vocabulary import DraftVocabulary
    from ..model.session import Session
    from ..model.upload import Tokens

CPU = torch.device("cpu")


class Writer(ABC):
    """What writes a chain ahead of the text, token by token."""

    kind: ClassVar[str]  # of its tokens' sources
    session: Session  # that writes, or that of the target whose layers are read

    def __init__(self, context: TextSoFar, device: torch.device = CPU) -> None:
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

    def entry_of(self, outputs: Sequence[torch.Tensor]) -> tuple[int, torch.Tensor] | None:
        """The same of what came out beside a chain that was replayed."""
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

    @property
    def replays(self) -> Replays | None:
        """What records chains."""
        return None

    @property
    def outbox(self) -> Outbox | None:
        """Where the session whose passes are recorded with it wants what comes out."""
        return self.session.outbox if isinstance(self.session, DecoderSession) else None

    def ahead(self, count: int) -> Ahead | None:
        """How a device writes so many tokens as one graph; None where it cannot."""
        return None

    def _queue(self, chain: Chain, count: int, stop: Callable[[], bool], confidence: bool) -> Proposal:
        """Have the device write the chain."""
        draws, greedy, device = self.sampler.draws, self.sampler.sampling.greedy, self._device
        uniforms = [] if greedy else draws.ahead(count)
        replayed = self._replayed(count, uniforms, confidence)
        if replayed is not None:
            ids, packed, shares, *entering = replayed.outputs
        else:
            goals = upload(torch.tensor(uniforms, dtype=torch.float64), device)
            written, packed, shares = self._written(count, goals, self.next_logits, confidence)
            root = upload(torch.tensor(self.text[-1:]), device)
            ids = torch.cat((root, written))
        size = len(ids) - 1
        qs = [*shares] if len(shares) else [None] * size

        def finish(found: Sequence[Sequence[float]]) -> Draft:
            [numbers] = found
            tokens, spoilt, sure = (numbers[part * size : (part + 1) * size] for part in range(3))
            for i, (token, q) in enumerate(zip(checked(tokens, spoilt), qs, strict=True)):
                chain.add(token, q, sure[i] if sure else None)
                if stop():
                    break
            draws.skip(0 if greedy else len(chain))
            return chain.draft(chain.tree(self.text[-1], self.kind))

        if not size:
            return chain.draft(chain.tree(self.text[-1], self.kind))
        entry = self.entry(ids[1:]) if replayed is None else self.entry_of(entering)
        parents = tuple(range(-1, size))
        return QueuedDraft(ids, parents, (None, *qs), (packed,), finish, entry, replayed and replayed.fixed)

    def _replayed(self, count: int, uniforms: Sequence[float], confidence: bool) -> Replayed | None:
        """The chain's ids, root and all, what `_written` returns beside, and what the target goes on from."""
        sampler, replays = self.sampler, self.replays
        if replays is None or sampler.penalises or self.detailed or self.interrupted():
            return None
        if (ahead := self.ahead(count)) is None:
            return None
        draws = len(uniforms)

        def work(numbers: torch.Tensor, *tensors: torch.Tensor) -> Outputs:
            goals, root, mine = numbers.tensor_split((draws, draws + 1))
            following, more = ahead.begin(mine, *tensors)
            written, packed, shares = self._written(count, goals, following, confidence)
            return torch.cat((root.long(), written)), packed, shares, *more(written)

        settings = None if sampler.sampling.greedy else replace(sampler.sampling, seed=0)
        numbers = *uniforms, self.text[-1], *ahead.numbers
        tensors = [(each, len(each)) for each in ahead.tensors]
        key = "chain", count, confidence, settings, ahead.key
        replayed = replays.run(key, numbers, tensors, self._device, work, self.outbox)
        if replayed is not None:
            ahead.done(count)
        return replayed

    def _written(
        self,
        count: int,
        uniforms: torch.Tensor,
        following: Callable[[torch.Tensor], torch.Tensor | None],
        confidence: bool,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The tokens of a chain, (n,); they, their faults and, where asked for, confidences, flat; every q, (n, V)."""
        greedy = self.sampler.sampling.greedy
        written = torch.empty(0, dtype=torch.long, device=self._device)
        faults, sures, qs = list[torch.Tensor](), list[torch.Tensor](), list[torch.Tensor]()
        while len(faults) < count and (logits := following(written)) is not None:
            sures += [largest_probability(logits[0])[None]] if confidence else []
            logits = self.sampler.penalise_behind(self.widen(logits), written)
            q = None if greedy and not self.detailed else self.sampler.probabilities(logits)
            here = uniforms[len(faults) : len(faults) + 1]
            token, fault = likeliest_rows(logits) if greedy or q is None else drawn_rows(q, here)
            written = torch.cat((written, token))
            faults.append(fault)
            qs += [] if q is None else [q]
        packed = torch.cat([each.double() for each in (written, *faults, *sures)])
        return written, packed, torch.cat(qs) if qs else packed[:0]

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
