"""Checks a record in every available way, and lists what could not be checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from decoding.engine import Engine
from decoding.model.session import ProgressCallback
from decoding.trace.rescore import Rescore, rescore
from decoding.types import Trace

from .again import run_again
from .contradiction import Contradiction, first_of
from .derived import contradictions, unchecked
from .header import unchecked_header, untrue_header
from .recomputed import Numbers, texts


@dataclass(frozen=True, slots=True)
class Recheck:
    """The tokens rescored, what else of the record is wrong, and what could not be checked."""

    tokens: Rescore
    contradictions: list[Contradiction]
    unchecked: list[str]


def recheck(engine: Engine, trace: Trace, progress: ProgressCallback | None = None, *, again: bool = False) -> Recheck:
    """Check a record against itself and against its model; with `again` against another run of the same settings too.

    ParamError if this engine cannot run it again.
    """
    numbers = Numbers(trace)
    problems = [*contradictions(trace), *untrue_header(engine, trace.header)]
    verdict = rescore(trace, engine.model, engine.session_pool, progress, numbers.look)
    problems += [*numbers.contradictions, *texts(engine, trace)]
    left_out = [*_unchecked(trace, numbers.replayed, again), *unchecked_header(engine, trace.header, again=again)]
    if again:
        others, why = run_again(engine, trace, progress)
        problems += others
        left_out += [why] if why else []
    return Recheck(verdict, first_of(problems), left_out)


def _unchecked(trace: Trace, replayed: int, again: bool) -> Iterator[str]:
    """List what could not be checked in a record; `replayed` counts the tokens whose draw was repeated."""
    header, steps = trace.header, trace.steps
    yield "times, beyond their sums"
    yield from unchecked(trace)
    if trace.summary is not None and trace.summary.finish in ("cancelled", "time", "error"):
        yield f"why the run ended early ({trace.summary.finish})"
    if header.record != "full":
        yield f"probabilities: the record is {header.record}"
    if header.sampling.get("temperature") == 0:
        yield "the seed: a greedy run draws nothing"
    if again:
        return
    if off := sum(len(step.tokens) - len(step.path) for step in steps):
        yield f"the target's answers at the {off} nodes off the accepted paths"
    if drafted := sum(step.drafted for step in steps):
        yield f"why these {drafted} guesses were made, and how likely the drafter found them"
    if header.sampling.get("temperature") != 0 and replayed < len(trace.ids):
        yield f"the draws of {len(trace.ids) - replayed} of {len(trace.ids)} tokens, which depend on the drafter's"
