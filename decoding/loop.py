"""The loop: propose, verify, commit, observe. Every method takes its steps by it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch

from .accept import AcceptanceRule, OneByOne
from .accept_at_once import Judge
from .clock import Clock, Mark
from .codec import Codec
from .drafting.drafter import Drafter
from .drafting.early_exit import EarlyExit
from .drafting.features import Features
from .errors import ParamError
from .methods import Context, Method
from .model.download import waits
from .model.seam import Seam
from .model.session import FirstLayers, JudgingSession, LayerStates, Model, Reading, Session, TreeSession
from .model.tree_reader import TreeReader
from .outlook import Outlook
from .parts.draft_vocabulary import drafted_by
from .queued import Proposal, QueuedDraft
from .ranking import likeliest, likeliest_and_ranked
from .request import Request
from .sampling import Sampler
from .stops import Stops
from .trace import columns as record
from .types import Draft, Role, Step, Verdict


class QueuedPass(NamedTuple):
    """The next step's pass, queued before the host knows the token that it reads."""

    reading: Reading
    marks: Sequence[Mark]


class Loop:
    """The state of a run between two steps."""

    def __init__(
        self, request: Request, model: Model, session: Session, draft: Session | None, drafts_on: Model, codec: Codec
    ) -> None:
        self._request, self._device, self._session = request, model.device, session
        self._vocabulary = model.card.vocabulary
        self._seam = Seam(session, len(request.prompt))
        self._largest = min(request.largest_step, model.step_rows or request.largest_step)
        self._chunk = min(request.prefill_chunk, self._largest)
        self._reader = TreeReader(session, self._chunk, request.progress)
        # Not a method of this object: a decoding method that holds one would keep the caches alive after the run.
        interrupted = self._interrupted = self._watch(request)
        self._stop_asked = lambda: interrupted() is not None
        written = partial(codec.continuation, request.prompt)  # with the first token's leading space
        self._stops = Stops(request.max_new_tokens, request.end_tokens, request.stop, written)
        self._sampler = Sampler(request.sampling, model.card.vocabulary, model.device, request.prompt)
        self._text = list(request.prompt)
        drafting = None if draft is None else (draft, drafts_on)
        self._method = start_method(
            request, self._text, self._sampler, session, drafting, model, self._largest, self._stop_asked
        )
        # A full record needs the logits themselves, and a penalty changes them.
        full = request.record == "full" or self._sampler.penalises
        self._judges = waits(model.device) and isinstance(session, JudgingSession) and session.judges and not full
        self._guesses = "hidden" in request.method.needs
        self._queued: QueuedPass | None = None
        self._outlook: Outlook | None = None  # of the step's nodes, which a full record on a CPU uses again

    @torch.inference_mode()
    def turn(self, index: int) -> tuple[Step | None, str | None]:
        """Take a step: return it, and why the run ends, or None."""
        if reason := self._interrupted():
            return None, reason
        clock, start = Clock(self._device), len(self._text)
        with clock.phase("draft"):
            proposal = self._propose(start)
        queued, self._queued = self._queued, None
        missing, alone = self._text[self._session.length : -1], len(proposal.parents) == 1
        reading: Reading | None
        if queued is not None and alone:  # a pass queued in vain is overwritten by the next one
            reading, judge = queued.reading, self._judge_in_pass(proposal)
            clock.ahead = queued.marks if reading.judged is not None else ()  # else the host launched it before
        else:
            with clock.forward():
                judge = self._judge_in_pass(proposal) if self._judges and not missing else None
                reading = self._reader.read(missing, proposal, self._room(proposal), self._stop_asked, judge=judge)
        if reading is None:
            return None, self._interrupted()
        with clock.phase("accept"):
            logits = self._penalised(reading.logits, proposal)
            if judge is not None and reading.judged is not None:
                answers = judge.ask(reading.judged)
                if alone and not self._method.may_guess and self._stops.left > 1 and not self._seam.lies_ahead:
                    self._queued = self._queue(judge.written(reading.judged), proposal, clock)
                with clock.waiting():
                    numbers = answers()
                draft, verdict = judge.decide_by(numbers, self._fit)
            else:
                draft, verdict = self._judge(proposal, logits, reading.hidden)
            emitted, finish = self._stops.cut(verdict.emitted)
            verdict = replace(verdict, path=verdict.path[: len(emitted) + 1], emitted=emitted)
        with clock.phase("commit"):
            if self._queued is None:
                self._reader.commit(verdict.path[: len(emitted)])  # all but the last token, which is the next root
            self._text.extend(emitted)
            self._sampler.extend(emitted)
        with clock.phase("draft"):
            if self._guesses and not verdict.guesses and finish is None:
                guesses = self._method.guess(reading.hidden[verdict.path[-1]])
                verdict = replace(verdict, guesses=tuple(guesses.flatten().tolist()))
            self._method.observe(draft, verdict)
        columns = self._columns(draft, verdict, logits[: len(draft.tokens)])
        accepted, drafted = len(verdict.path) - 1, draft.roles.count(Role.VERIFY)
        fed = len(missing) + len(proposal.parents)
        columns["experts"] = reading.experts
        return Step(index, start, len(missing), emitted, accepted, drafted, fed, clock.stop(), **columns), finish

    def _watch(self, request: Request) -> Callable[[], str | None]:
        """Return a function that returns why the run must end early, or None."""
        return partial(_interruption, request.cancel, time.monotonic() + request.time_budget)

    def _propose(self, start: int) -> Proposal:
        """Ask the method for a draft after a text of `start` tokens."""
        proposal, crossed = self._method.propose(), self._seam.crossed(start)
        if crossed:
            proposal = replace(proposal, entry=None)
        return proposal.on(self._device) if isinstance(proposal, QueuedDraft) else self._seam.fit(proposal, start)

    def _fit(self, draft: Draft) -> Draft:
        return self._seam.fit(draft, len(self._text))

    def _room(self, proposal: Proposal) -> int:
        """Return how many tokens that the cache lacks may be read in one pass with the draft."""
        nodes, largest = len(proposal.parents), self._largest
        if nodes > largest:
            raise ParamError(f"a draft of {nodes} tokens exceeds the {largest} that a step holds: ask for fewer")
        return min(self._chunk, largest - nodes)

    def _penalised(self, logits: torch.Tensor, proposal: Proposal) -> torch.Tensor:  # (T, V)
        if isinstance(proposal, QueuedDraft):
            return self._sampler.penalise_queued(logits, proposal.ids, proposal.parents)
        return self._sampler.penalise_tree(logits, proposal)

    def _judge(self, proposal: Proposal, logits: torch.Tensor, hidden: torch.Tensor) -> tuple[Draft, Verdict]:
        """Decide which guesses are accepted."""
        if isinstance(proposal, QueuedDraft) or waits(self._device):
            return self._judge_at_once(proposal).decide(logits, hidden, self._fit)
        sampler, rule = self._sampler, self._rule()
        if self._request.record == "full":
            self._outlook = sampler.outlook(logits)
        ranked = list[list[int]]()  # the likeliest tokens at every node, if the method asks for them
        if count := self._request.params.ranked:
            argmax, ranked = likeliest_and_ranked(logits, count)
        elif self._outlook is None or sampler.filters:
            argmax = likeliest(logits)
        else:
            argmax = self._outlook.likeliest()
        answers = OneByOne(proposal, rule, lambda nodes: sampler.probabilities(logits[nodes]), argmax)
        return proposal, Verdict(*rule.accept(proposal, answers), tuple(argmax), ranked=ranked, tested=rule.tested)

    def _queue(self, token: torch.Tensor, root: Proposal, clock: Clock) -> QueuedPass:  # (1,)
        """Commit a root without guesses, and queue the pass over the token after it."""
        assert isinstance(self._session, JudgingSession)
        self._reader.commit([0])
        with clock.next_pass() as marks:
            judge = self._judge_at_once(root, ahead=1)
            token = token.clamp_(max=self._vocabulary - 1)  # a draw from NaN may be any number
            return QueuedPass(self._session.read(token, root.parents, judge=judge), marks)

    def _judge_at_once(self, proposal: Proposal, ahead: int = 0) -> Judge:
        """Return a judge whose numbers are fetched in one copy."""
        method = self._method
        guess = method.guess if self._guesses else None
        return Judge(proposal, self._rule(ahead), guess, method.guess_key, self._request.params.ranked)

    def _judge_in_pass(self, proposal: Proposal) -> Judge | None:
        """Return a judge that computes the same at every step, so that the pass records it; None if it differs."""
        judge = self._judge_at_once(proposal)
        return None if judge.key is None else judge

    def _rule(self, ahead: int = 0) -> AcceptanceRule:
        """Return the rule for the next step, or for one `ahead` tokens later."""
        request, sampler = self._request, self._sampler
        position = len(self._text) - len(request.prompt) + request.written + ahead
        return AcceptanceRule(sampler.sampling, sampler.draws, position, request.params.typical)

    def _columns(self, draft: Draft, verdict: Verdict, logits: torch.Tensor) -> dict[str, Any]:
        """Return the record's columns over the nodes."""
        level = self._request.record
        if level == "off":
            return {}
        columns = record.light_columns(draft, verdict, self._method.panel())
        if level == "full":
            columns |= record.detail(draft, verdict, self._outlook or self._sampler.outlook(logits))
            self._outlook = None  # it holds the logits, which may be large
        return columns


def start_method(
    request: Request,
    text: list[int],
    sampler: Sampler,
    target: object,
    draft: tuple[TreeSession, Model] | None,
    model: Model,
    largest_step: int,
    interrupted: Callable[[], bool],
) -> Method:
    """Start the request's method on a text, which its owner extends.

    `target` gives access to the target's layers, if the method needs it.
    """
    context = Context(
        text=text,
        prompt_length=len(text),
        max_new_tokens=request.max_new_tokens,
        sampler=sampler,
        end_tokens=request.end_tokens,
        largest_step=largest_step,
        parts=request.parts,
        session_pool=request.session_pool,
        memory=request.memory,
        reference=request.reference,
        interrupted=interrupted,
        random=random.Random(request.sampling.seed),
        detailed=request.record == "full",
    )
    if draft is not None:
        session, owner = draft
        context.draft = Drafter(session, context, owner.device, drafted_by(owner))
    if "early_exit" in request.method.needs and isinstance(target, FirstLayers):
        context.target = EarlyExit(target, context, model.device)
    if "features" in request.method.needs and isinstance(target, LayerStates):
        context.features = Features(target, model.device)
    return request.method(context, request.params)


def _interruption(cancel: threading.Event, deadline: float) -> str | None:
    """Return why a run must end early, or None."""
    if cancel.is_set():
        return "cancelled"
    return "time" if time.monotonic() > deadline else None
