"""Drafts a chain of tokens after a text, one by one: a draft model, or the target's own first layers.

The loop is the method's. On a CPU it runs once and knows every token. On a device it runs twice: first to queue the
work, without knowing any token or ending early; then, when the numbers have been fetched together with the target's
answers, to find out where it would have ended. Queued work that repeats is recorded and replayed as one graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from ..model.decoder_session import DecoderSession
from ..model.download import waits
from ..model.replays import Outbox, Replayed, Replays
from ..model.upload import upload
from ..outlook import largest_probability, surest_of_few
from ..queued import Proposal, QueuedDraft
from ..ranking import checked, likeliest, likeliest_rows
from ..sampling import draw, drawn_rows
from ..types import Draft
from .chain import Chain, Drawn, HostChain, OpenChain
from .text_so_far import TextSoFar

if TYPE_CHECKING:
    from ..model.draft_vocabulary import DraftVocabulary
    from ..model.graphs import Outputs

CPU = torch.device("cpu")
Reads = tuple[Callable[[Any], Any], ...]  # what a drafter can do in a method's loop
ChainLoop = Callable[..., None]  # of a method: drafts a chain, given an `OpenChain` and a drafter's reads


@dataclass(frozen=True, slots=True)
class Recordable:
    """A chain that a device can draft as one graph."""

    key: Hashable
    numbers: tuple[float, ...]  # what differs from step to step
    tensors: tuple[torch.Tensor, ...]
    # Takes these numbers and tensors on the device; returns the drafter's reads, and the outputs after the chain.
    begin: Callable[..., tuple[Reads, Callable[[], Outputs]]]
    done: Callable[[int], None]  # updates the host's state, given how many tokens have been drafted


class Writer(ABC):
    """Drafts a chain after the text, token by token."""

    kind: ClassVar[str]  # of its tokens' sources
    session: object  # the drafter's, or the target's whose layers are read

    def __init__(self, context: TextSoFar, device: torch.device = CPU) -> None:
        # Not the context, which refers to the drafter: a cycle would keep the caches alive after the run.
        self.text, self.sampler, self.end_tokens = context.text, context.sampler, context.end_tokens
        self.interrupted, self.detailed = context.interrupted, context.detailed
        self.vocabulary: DraftVocabulary | None = None  # the tokens that its logits are over; None: all
        self.device, self.queues = device, waits(device)  # if the host would wait for every token, work is queued

    @property
    @abstractmethod
    def reads(self) -> Reads:
        """Return the functions that the method's loop calls, in the order of its arguments."""

    def entry(self, beside: Sequence[torch.Tensor] = ()) -> tuple[int, torch.Tensor] | None:
        """Return `Draft.entry`; `beside`: the further outputs of a replayed chain."""
        return None

    def propose(self, chain: Chain, count: int, loop: ChainLoop, confidence: bool) -> Proposal:
        """Run a method's loop, which drafts up to `count` tokens into an empty chain.

        `confidence` asks for the probability of the likeliest token, before temperature and filters.
        """
        if count > 0 and self.queues:
            return self._queue(chain, count, loop, confidence)
        choose = partial(self._choose, chain.tokens, confidence)
        loop(HostChain(chain, choose, self.end_tokens, self.interrupted), *self.reads)
        self._shape(chain)
        draft = chain.draft(chain.tree(self.text[-1], self.kind))
        return replace(draft, entry=self.entry()) if len(chain) else draft

    @property
    def replays(self) -> Replays | None:
        """Return the recordings of the drafting session."""
        return None

    @property
    def outbox(self) -> Outbox | None:
        """Return the outbox of a session that also records its passes, for the results."""
        return self.session.outbox if isinstance(self.session, DecoderSession) else None

    def recordable(self, count: int) -> Recordable | None:
        """Return how a device drafts `count` tokens as one graph; None if it cannot."""
        return None

    def _queue(self, chain: Chain, count: int, loop: ChainLoop, confidence: bool) -> Proposal:
        """Queue the chain on the device."""
        draws, greedy, device = self.sampler.draws, self.sampler.sampling.greedy, self.device
        uniforms = [] if greedy else draws.ahead(count)
        replayed = self._replayed(count, loop, uniforms, confidence)
        if replayed is not None:
            ids, packed, shares, *beside = replayed.outputs
        else:
            goals = upload(torch.tensor(uniforms, dtype=torch.float64), device)
            queued = DeviceChain(self, goals, confidence, self.interrupted)
            loop(queued, *self.reads)
            root = upload(torch.tensor(self.text[-1:]), device)
            ids, packed, shares, *beside = torch.cat((root, queued.tokens)), *queued.outputs
        size = len(ids) - 1
        if not size:
            return chain.draft(chain.tree(self.text[-1], self.kind))
        qs = [*shares] if len(shares) else [None] * size

        def finish(fetched: Sequence[Sequence[float]]) -> Draft:
            [numbers] = fetched
            tokens, faults, sure = (numbers[part * size : (part + 1) * size] for part in range(3))
            confidences: Sequence[float | None] = sure or [None] * size
            drawn = iter([*zip(checked(tokens, faults), qs, confidences, strict=True)])
            open_chain = HostChain(chain, lambda logits: next(drawn, None), self.end_tokens, lambda: False)
            loop(open_chain, *[lambda _: packed for _ in self.reads])  # nothing is read: the tokens are known
            draws.skip(0 if greedy else len(chain))
            return chain.draft(chain.tree(self.text[-1], self.kind))

        parents, fixed = tuple(range(-1, size)), replayed and replayed.fixed
        return QueuedDraft(ids, parents, (None, *qs), (packed,), finish, self.entry(beside), fixed)

    def _replayed(self, count: int, loop: ChainLoop, uniforms: Sequence[float], confidence: bool) -> Replayed | None:
        """Draft the chain as one graph: return the ids with the root, the chain's outputs, and further outputs."""
        sampler, replays = self.sampler, self.replays
        if replays is None or sampler.penalises or self.detailed or self.interrupted():
            return None
        if (recordable := self.recordable(count)) is None:
            return None
        draws = len(uniforms)

        def work(numbers: torch.Tensor, *tensors: torch.Tensor) -> Outputs:
            goals, root, rest = numbers.tensor_split((draws, draws + 1))
            reads, beside = recordable.begin(rest, *tensors)
            queued = DeviceChain(self, goals, confidence, lambda: False)
            loop(queued, *reads)
            return torch.cat((root.long(), queued.tokens)), *queued.outputs, *beside()

        settings = None if sampler.sampling.greedy else replace(sampler.sampling, seed=0)
        numbers = *uniforms, self.text[-1], *recordable.numbers
        tensors = [(each, len(each)) for each in recordable.tensors]
        key = "chain", getattr(loop, "__func__", loop), count, confidence, settings, recordable.key
        replayed = replays.run(key, numbers, tensors, self.device, work, self.outbox)
        if replayed is not None:
            recordable.done(count)
        return replayed

    def widen(self, logits: torch.Tensor) -> torch.Tensor:  # (..., n) -> (..., V)
        """Return logits over the target's vocabulary."""
        return logits if self.vocabulary is None else self.vocabulary.widen(logits)

    def _choose(self, written: Sequence[int], confidence: bool, logits: torch.Tensor) -> Drawn:  # (1, n)
        """Draw from q, or take the likeliest token when greedy; also return q and the confidence, if needed.

        A greedy token has logits in place of q until the chain is written.
        """
        sampler = self.sampler
        if sampler.plain:  # then no logits are needed for tokens outside its vocabulary
            if confidence:
                [index], [sure] = surest_of_few(logits)
            else:
                [index], sure = likeliest(logits), None
            token = index if self.vocabulary is None else self.vocabulary.listed[index]
            return token, logits[0] if self.detailed else None, sure
        sure = float(largest_probability(logits[0])) if confidence else None
        logits = sampler.penalise(self.widen(logits), [written])
        if sampler.sampling.greedy:
            return likeliest(logits)[0], logits[0] if self.detailed else None, sure
        q = sampler.probabilities(logits[0])
        return draw(q, sampler.draws.fresh()), q, sure

    def _shape(self, chain: Chain) -> None:
        """Replace a greedy chain's logits by q, all at once: that costs less, and delays no token."""
        if chain.q and self.detailed and self.sampler.sampling.greedy:
            logits = torch.stack([row for row in chain.q if row is not None])
            chain.q = [*self.sampler.probabilities(self.widen(logits) if self.sampler.plain else logits)]


class DeviceChain(OpenChain):
    """A chain whose tokens only the device knows."""

    tokens: torch.Tensor

    def __init__(
        self, writer: Writer, uniforms: torch.Tensor, confidence: bool, interrupted: Callable[[], bool]
    ) -> None:
        self._writer, self._uniforms, self._confidence, self._interrupted = writer, uniforms, confidence, interrupted
        self.tokens = torch.empty(0, dtype=torch.long, device=writer.device)
        self._faults, self._sures, self._qs = list[torch.Tensor](), list[torch.Tensor](), list[torch.Tensor]()

    def draw(self, logits: torch.Tensor | None) -> None:
        """Queue the drawing of the next token."""
        if logits is None:
            self.ended = True
            return
        writer, sampler = self._writer, self._writer.sampler
        if self._confidence:
            self._sures.append(largest_probability(logits[0])[None])
        logits = sampler.penalise_behind(writer.widen(logits), self.tokens)
        q = None if sampler.sampling.greedy and not writer.detailed else sampler.probabilities(logits)
        uniform = self._uniforms[len(self.tokens) : len(self.tokens) + 1]
        token, fault = likeliest_rows(logits) if sampler.sampling.greedy or q is None else drawn_rows(q, uniform)
        self.tokens = torch.cat((self.tokens, token))
        self._faults.append(fault)
        self._qs += [] if q is None else [q]
        self.ended = self._interrupted()

    @property
    def outputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tokens, their faults and any confidences in one flat tensor; and every q, (n, V)."""
        packed = torch.cat([each.double() for each in (self.tokens, *self._faults, *self._sures)])
        return packed, torch.cat(self._qs) if self._qs else packed[:0]
