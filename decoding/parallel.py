"""Lookahead Parallelism (Fu et al., arXiv 2402.02057, section 3.4), for the tree of any method.

Every rank runs the whole method with the same seed on a copy of the model. It reads its share of a step's tree
(`shares.py`) and judges it as if it were alone. Then the ranks exchange the tokens that they chose (`exchange.py`), and
each walks the whole tree by these. Nothing else of a pass is sent: accepted tokens that a rank has not read are pending
in its next step.

A chain of guesses has one leaf, so one rank reads all of it: ranks gain nothing there and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import torch

from . import accept
from .codec import Codec
from .errors import RankError
from .exchange import Exchange, refuse_distributions
from .loop import Loop
from .model.download import fetch
from .model.session import Model, Reading, Session
from .model.tree_reader import TreeReader
from .processor import processor_name
from .queued import Proposal, QueuedDraft
from .ranks import Ranks
from .request import Request
from .shares import Shares, cut
from .tree import depths
from .types import Draft, Role, Step, Verdict

if TYPE_CHECKING:
    from .model.captured import PassJudge


class _InterruptedError(Exception):
    """A rank was interrupted before it had read its share, so there is no step."""


class ParallelLoop(Loop):
    """The loop on one rank."""

    def __init__(
        self, request: Request, model: Model, session: Session, draft: Session | None, drafts_on: Model, codec: Codec
    ) -> None:
        assert request.ranks is not None
        self._exchange = Exchange(request.ranks, super()._watch(request), sampling=not request.sampling.greedy)
        super().__init__(request, model, session, draft, drafts_on, codec)
        self._judges = False  # the other ranks' choices count as well
        self._reader = self._share = _ShareReader(session, self._chunk, request, self._exchange)
        _check_same_run(request.ranks, request, model)

    def turn(self, index: int) -> tuple[Step | None, str | None]:
        """Take a step: return it, and why the run ends, or None; the same on every rank."""
        before = self._exchange.ranks.received
        try:
            step, finish = super().turn(index)
        except _InterruptedError:
            return None, self._exchange.agreed()
        if step is not None:
            readers = self._share.shares.readers if step.tokens else ()
            fed, exchanged = step.pending + len(self._share.nodes), self._exchange.ranks.received - before
            step = replace(step, fed=fed, ranks=readers, exchanged=exchanged)
        return step, finish

    def _watch(self, request: Request) -> Callable[[], str | None]:
        """Watch what all ranks have agreed on: a rank that ended alone would leave the others waiting."""
        return self._exchange.agreed

    def _propose(self, start: int) -> Proposal:
        """Return a draft whose tokens the host knows, so that it can be cut into shares."""
        proposal = super()._propose(start)
        if isinstance(proposal, QueuedDraft):
            return self._fit(proposal.finish(fetch(*proposal.numbers)))
        return proposal

    def _penalised(self, logits: torch.Tensor, proposal: Proposal) -> torch.Tensor:
        return super()._penalised(logits, self._share.draft)

    def _judge(self, proposal: Proposal, logits: torch.Tensor, hidden: torch.Tensor) -> tuple[Draft, Verdict]:
        """Judge the share, then the whole tree by the choices of all ranks."""
        assert isinstance(proposal, Draft)
        share, greedy = self._share, self._sampler.sampling.greedy
        part, verdict = super()._judge(share.draft, logits, hidden)
        drawn = {} if greedy else {0: verdict.emitted[0]}
        for row, depth in enumerate(depths(part.parents) if drawn else ()):  # rows with equal paths too
            if part.roles[row] is Role.VERIFY and drawn.get(part.parents[row]) == part.tokens[row]:
                drawn[row] = verdict.emitted[depth]
        chosen = self._exchange.choices(
            proposal,
            share.shares,
            dict(zip(share.nodes, verdict.argmax, strict=True)),
            {share.nodes[row]: token for row, token in drawn.items()},
        )
        if chosen is None:
            raise _InterruptedError
        walked = proposal
        if not greedy:
            # A rank draws where its walk leads. If rounding separates the walks of two ranks, the path ends there.
            choices = zip(proposal.roles, chosen.drawn, strict=True)
            walked = replace(proposal, roles=tuple(role if token >= 0 else Role.EXPLORE for role, token in choices))
        path, emitted = accept.walk(walked, accept.greedy(chosen.argmax if greedy else chosen.drawn))
        return proposal, Verdict(path, emitted, tuple(chosen.argmax))


class _ShareReader(TreeReader):
    """Reads a rank's share of a tree, and stores its accepted nodes."""

    shares: Shares
    nodes: tuple[int, ...]  # of the share, in the order of a reading's rows
    draft: Draft  # the share as a tree

    def __init__(self, session: Session, chunk: int, request: Request, exchange: Exchange) -> None:
        super().__init__(session, chunk, request.progress)
        self._exchange = exchange

    def read(
        self,
        missing: Sequence[int],
        draft: Proposal,
        room: int,
        interrupted: Callable[[], bool],
        only: Sequence[int] | None = None,
        judge: PassJudge | None = None,
    ) -> Reading | None:
        """Read the missing tokens, then the share. If interrupted, tell the other ranks and return None."""
        assert isinstance(draft, Draft) and only is None and judge is None
        refuse_distributions(draft)
        ranks = self._exchange.ranks
        self.shares = cut(draft.parents, ranks.count)
        self.nodes = self.shares.nodes[ranks.rank]
        self.draft = part_of(draft, self.nodes)
        reading = super().read(missing, self.draft, room, self._exchange.interrupted)
        if reading is None:
            self._exchange.choices(draft, self.shares, None, {})
        return reading

    def commit(self, nodes: Sequence[int]) -> None:
        """Store those nodes of an accepted path that this rank has read: the path's first ones."""
        rows = {node: row for row, node in enumerate(self.nodes)}
        super().commit([rows[node] for node in nodes if node in rows])


def part_of(draft: Draft, nodes: Sequence[int]) -> Draft:
    """Return some nodes of a draft, which include the ancestors of each, as a draft."""
    rows = {node: row for row, node in enumerate(nodes)} | {-1: -1}
    return Draft(
        tuple(draft.tokens[node] for node in nodes),
        tuple(rows[draft.parents[node]] for node in nodes),
        tuple(draft.roles[node] for node in nodes),
        tuple(draft.sources[node] for node in nodes),
    )


def _check_same_run(ranks: Ranks, request: Request, model: Model) -> None:
    """Raise RankError unless all ranks have the same arguments and models, and for some methods the same machine.

    Guesses of a drafter or another part may depend on rounding, which would make the ranks' trees differ.
    """
    settings = (request.method.name, request.params, request.sampling, request.prompt, request.max_new_tokens)
    more = (request.stop, sorted(request.end_tokens), request.reference, request.prefill_chunk, request.record)
    machine = (processor_name(), torch.get_num_threads(), _device_name(model.device)) if request.method.needs else ()
    weights = (model.card, model.precision, torch.__version__)
    digest = sha256(repr((settings, more, machine, weights)).encode()).digest()
    numbers = [int.from_bytes(digest[at : at + 4], signed=True) for at in range(0, 16, 4)]
    if any(other != numbers for other in ranks.gather(numbers)):
        raise RankError("the ranks differ in their arguments, models or machines: give all of them the same")


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
