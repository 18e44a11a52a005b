"""The loop along a recorded text: the method drafts, the target reads, and the record decides what is accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.loop import Loop
from decoding.model.download import fetch
from decoding.model.session import TapSession, catch_up
from decoding.queued import QueuedDraft
from decoding.request import Request
from decoding.types import JSON, Draft, Role, Step, Timing


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step as the record has it."""

    accepted: int
    drafted: int | None
    written: int


class Cuts:
    """The steps of a record in their order, from the rows of a run and its steps.

    `bare` says that the first pass, which reads the prompt, has no guesses in the engine of the record.
    """

    def __init__(self, run: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> None:
        exact = run["engine"] == "specscope"  # ours counts steps without a guess as well, other engines leave them out
        self.bare = not exact and bool(steps) and steps[0]["drafted"] == 0
        self._waiting = [
            RecordedStep(step["accepted"], step["drafted"], step["written"])
            for step in steps
            if exact or step["drafted"] != 0
        ]
        # Engines that count their guesses leave out steps that had none. Where the end of the text has cut the last
        # recorded step, a few of those may follow it.
        counted = not exact and all(step.drafted is not None for step in self._waiting)
        last = self._waiting[-1].accepted if self._waiting else 0
        self._left_out = len(steps) - len(self._waiting) - self.bare + last if counted else 0

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, guesses: int) -> RecordedStep | None:
        """Return the step that begins here, with so many guesses; None if the record leaves it out."""
        if not self._waiting or (not guesses and self._left_out > 0):
            self._left_out -= 1
            return None
        return self._waiting.pop(0)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A step with more or fewer guesses that match the recorded text than the record says were accepted."""

    run: int
    step: int
    recorded: int  # accepted guesses
    accepted: int  # when drafted again

    def to_json(self) -> dict[str, JSON]:
        """Return it as a summary lists it."""
        return {"run": self.run, "step": self.step, "recorded": self.recorded, "found": self.accepted}


@dataclass(slots=True)
class Comparison:
    """The steps of one run, drafted again, and how they compare with the record's."""

    steps: list[Step] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)  # for each step, how many of its guesses match the text
    findings: list[Disagreement] = field(default_factory=list)
    compared: int = 0  # steps with guesses, in the record or here
    other_lengths: int = 0  # of these, steps that drafted another number of guesses than recorded
    other_choices: int = 0  # tokens that are not the target's own choice
    left: int = 0  # recorded steps for which no text was left


class RestoringLoop(Loop):
    """A loop that emits the tokens of a record."""

    ids: Sequence[int] = ()

    def compare(self, run: int, cuts: Cuts) -> Comparison:
        """Take all steps of a run."""
        made, left = Comparison(), len(self.ids)
        while left:
            step, reached, others, recorded = self._along(len(made.steps), cuts)
            made.steps.append(step)
            made.reached.append(reached)
            made.other_choices += others
            if recorded is not None and (recorded.drafted != 0 or step.drafted):
                made.compared += 1
                made.other_lengths += recorded.drafted not in (None, step.drafted)
                if min(recorded.accepted, left) != min(reached, left):
                    made.findings.append(Disagreement(run, step.index, recorded.accepted, reached))
            left -= len(step.emitted)
        made.left = len(cuts)
        return made

    @torch.inference_mode()
    def _along(self, index: int, cuts: Cuts) -> tuple[Step, int, int, RecordedStep | None]:
        """Take one step; return it, how far its guesses matched, the target's other choices, and the recorded step."""
        start, bare = len(self._text), cuts.bare and not index
        rest = self.ids[start - len(self._request.prompt) :]
        proposal = self._propose(start)
        if isinstance(proposal, QueuedDraft):
            proposal = self._fit(proposal.finish(fetch(*proposal.numbers)))
        missing = self._text[self._session.length : -1]
        reading = self._reader.read(missing, proposal, self._room(proposal), self._stop_asked)
        if reading is None:
            raise ParamError("the run was interrupted")
        logits = self._penalised(reading.logits, proposal)
        draft, verdict = self._judge(proposal, logits, reading.hidden)
        way = [0] if bare else _followed(draft, rest)
        recorded = None if bare else cuts.take(draft.roles.count(Role.VERIFY))
        count = 1 if recorded is None else max(1, min(recorded.written, len(rest)))
        path = way[: 1 + min(recorded.accepted, count)] if recorded is not None else [0]
        emitted = tuple(rest[:count])
        self._reader.commit(path[: len(emitted)])
        self._text.extend(emitted)
        self._sampler.extend(emitted)
        others = sum(verdict.argmax[node] != token for node, token in zip(path, emitted, strict=False))
        hidden = self._catch_up(reading.hidden[path[-1]])
        guesses = tuple(self._method.guess(hidden).flatten().tolist()) if self._guesses else ()
        verdict = replace(verdict, path=tuple(path), emitted=emitted, guesses=guesses)
        self._method.observe(draft, verdict)
        columns = self._columns(draft, verdict, logits[: len(draft.tokens)])
        drafted, fed = draft.roles.count(Role.VERIFY), len(missing) + len(proposal.parents)
        step = Step(index, start, len(missing), emitted, len(path) - 1, drafted, fed, Timing(), **columns)
        return (_without_guesses(step) if bare else step), len(way) - 1, others, recorded

    def _catch_up(self, hidden: torch.Tensor) -> torch.Tensor:  # (H,)
        """Read the emitted tokens that were not guesses; return the hidden state before the new root."""
        missing = self._text[self._session.length : -1]
        if not missing:
            return hidden
        catch_up(self._session, missing[:-1], 0, self._chunk)
        reading = self._session.read(missing[-1:], (-1,))
        self._session.commit([0])
        return reading.hidden[0]


class Sessions:
    """A context that gives a loop on sessions of the engine's, and hands these back."""

    def __init__(self, engine: Engine, request: Request) -> None:
        self._engine, self._request = engine, request

    def __enter__(self) -> RestoringLoop:
        engine, request = self._engine, self._request
        owners, room = [engine.model], len(request.prompt) + request.max_new_tokens
        if engine.draft is not None and "draft_model" in request.method.needs:
            owners.append(engine.draft)
        self._held = [(owner, engine.session_pool.acquire(owner, room, request.largest_step)) for owner in owners]
        for _, session in self._held:
            session.reset(len(request.prompt))
        draft = self._held[1][1] if len(owners) > 1 else None
        return RestoringLoop(request, engine.model, self._held[0][1], draft, owners[-1], engine.codec)

    def __exit__(self, *exception: object) -> None:
        for owner, session in self._held:
            if isinstance(session, TapSession):
                session.tap()
            self._engine.session_pool.release(owner, session)


def _followed(draft: Draft, rest: Sequence[int]) -> list[int]:
    """Return the nodes of a draft along a text, root first."""
    children: dict[tuple[int, int], int] = {}
    for node in range(len(draft.tokens) - 1, 0, -1):  # of equal siblings the first counts, as in a walk
        if draft.roles[node] is Role.VERIFY:
            children[draft.parents[node], draft.tokens[node]] = node
    path = [0]
    for token in rest:
        if (path[-1], token) not in children:
            break
        path.append(children[path[-1], token])
    return path


def _without_guesses(step: Step) -> Step:
    """Reduce a step to its root."""
    columns = ("tokens", "parents", "roles", "sources", "choices", "p", "q", "top", "draft_top", "entropy", "overlap")
    cut = {name: getattr(step, name)[:1] for name in columns}
    return replace(step, drafted=0, fed=step.pending + 1, panel={}, **cut)
